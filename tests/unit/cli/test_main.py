"""The door: exit codes, coded blocks, no traceback, and a light import."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import NoReturn

import click
import pytest

from fuseline.cli import main as door
from fuseline.errors import FuselineError


def _raising(problem: BaseException) -> click.Command:
    @click.command(name="errors")
    @click.option("--json", "as_json", is_flag=True)
    def errors(as_json: bool) -> NoReturn:
        raise problem

    return errors


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch):
    def install(problem: BaseException) -> None:
        monkeypatch.setattr(door.Commands, "get_command", lambda self, ctx, name: _raising(problem))

    return install


def test_a_good_command_exits_0(capsys: pytest.CaptureFixture[str]):
    assert door.main(["errors"]) == 0
    assert "E0101  model file cannot be read" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["nope"], ["errors", "--nope"], ["run"], ["errors", "E9999"], ["stats", "m.onnx", "--dedup", "odd"]]
)
def test_usage_exits_2_with_a_coded_block(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert door.main(arguments) == 2
    assert capsys.readouterr().err.startswith("error E0501: option is wrong\n")


def test_usage_under_json_is_one_document_on_stdout(capsys: pytest.CaptureFixture[str]):
    assert door.main(["errors", "--nope", "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert (document["version"], document["command"], document["error"]["code"]) == (1, "errors", "E0501")


def test_an_error_block_has_code_node_reason_and_hint(failing, capsys: pytest.CaptureFixture[str]):  # pyright: ignore
    failing(FuselineError("E0106", "mode is 'cubic'", node="Resize_7", hint="use linear"))
    assert door.main(["errors"]) == 1
    err = capsys.readouterr().err
    for word in (
        "E0106",
        "operator or attribute is unsupported",
        "Resize_7",
        "mode is 'cubic'",
        "use linear",
        "fuseline errors E0106",
    ):
        assert word in err


@pytest.mark.parametrize("code", sorted(door.USAGE_CODES))
def test_errors_of_what_was_typed_exit_2(failing, code: str):  # pyright: ignore
    failing(FuselineError(code, "wrong"))
    assert door.main(["errors"]) == 2


def test_an_unexpected_exception_is_E0901_without_traceback(failing, capsys: pytest.CaptureFixture[str]):  # pyright: ignore
    failing(ZeroDivisionError("by zero"))
    assert door.main(["errors"]) == 1
    err = capsys.readouterr().err
    assert "E0901" in err
    assert "ZeroDivisionError: by zero" in err
    assert "Traceback" not in err


def test_debug_shows_the_traceback_wherever_it_stands(failing, capsys: pytest.CaptureFixture[str]):  # pyright: ignore
    failing(ZeroDivisionError("by zero"))
    assert door.main(["errors", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_quiet(failing, capsys: pytest.CaptureFixture[str]):  # pyright: ignore
    failing(KeyboardInterrupt())
    assert door.main(["errors"]) == door.INTERRUPTED
    assert capsys.readouterr().err.strip() == ""


@pytest.mark.parametrize("name", list(door.COMMANDS))
def test_every_listed_command_exists_and_takes_json(name: str):
    command = door.cli.get_command(click.Context(door.cli), name)
    assert command is not None
    assert any("--json" in parameter.opts for parameter in command.params)


def test_help_imports_no_compiler():
    script = (
        "import sys; from fuseline.cli.main import main; main(['--help']); assert not {'xdsl', 'onnx', "
        "'llvmlite'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_no_color_and_pipes_get_plain_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("NO_COLOR", "1")
    door.main(["errors", "E9999"])
    assert "\x1b" not in capsys.readouterr().err
