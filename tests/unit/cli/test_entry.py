"""The console script and `python -m fuseline`, and what they say where the compiler is not installed."""

from __future__ import annotations

import gc
import json
import runpy
import sys
from collections.abc import Iterator

import pytest

from fuseline.cli import entry


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """This process does not end with the command."""
    yield
    gc.unfreeze()


def _exit_code(monkeypatch: pytest.MonkeyPatch, *arguments: str, module: bool = False) -> object:
    monkeypatch.setattr(sys, "argv", ["fuseline", *arguments])
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("fuseline", run_name="__main__") if module else entry.run()
    return stop.value.code


@pytest.mark.parametrize("module", [False, True])
def test_the_arguments_of_the_process(
    module: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _exit_code(monkeypatch, "errors", "E0101", module=module) == 0
    assert capsys.readouterr().out.startswith("# E0101")
    assert _exit_code(monkeypatch, "errors", "E9999", module=module) == 2


def test_the_end_of_the_process_collects_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _exit_code(monkeypatch, "errors") == 0
    assert gc.get_freeze_count() > 0


def test_the_module_does_nothing_when_it_is_imported() -> None:
    import fuseline.__main__ as module

    assert module.run is entry.run


@pytest.fixture
def without_click(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "click", None)
    monkeypatch.delitem(sys.modules, "fuseline.cli.main", raising=False)


@pytest.mark.usefixtures("without_click")
def test_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit_code(monkeypatch, "--debug", "run", "m.onnx") == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("error E0503: ")
    assert [line.split()[0] for line in lines[1:]] == ["why", "try", "else"]
    assert "click" in lines[1] and "pip install" in lines[2] and "fuseline.load(path)" in lines[3]


@pytest.mark.usefixtures("without_click")
@pytest.mark.parametrize(("arguments", "command"), [(["run", "--json"], "run"), (["--json"], "fuseline")])
def test_what_to_install_is_a_document(
    arguments: list[str], command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _exit_code(monkeypatch, *arguments) == 1
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert (document["version"], document["command"], document["error"]["code"]) == (1, command, "E0503")
    assert not shown.err
