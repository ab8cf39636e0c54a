"""The garbage collector is off during a compile and an import of a command, and afterwards as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import ModuleType

import pytest

import fuseline
from fuseline.cli import main as door
from fuseline.gc_pause import gc_paused
from tests.graphs.onnx_text import onnx_model


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    yield
    gc.enable()


def test_off_inside_and_on_again() -> None:
    with gc_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_on_again_after_a_failure() -> None:
    with pytest.raises(KeyError), gc_paused():
        raise KeyError
    assert gc.isenabled()


def test_what_was_off_stays_off() -> None:
    gc.disable()
    with gc_paused(), gc_paused():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_a_compile() -> None:
    seen: list[bool] = []
    model = onnx_model("(float[3] x) => (float[3] y) { y = Relu(x) }")
    fuseline.compile(model, cache=False, progress=lambda phase, done, total: seen.append(gc.isenabled()))
    assert seen
    assert not any(seen)
    assert gc.isenabled()


def test_the_import_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def imported(name: str) -> ModuleType:
        seen.append(gc.isenabled())
        return __import__(name, fromlist=["errors"])

    monkeypatch.setattr(door, "import_module", imported)
    assert door.main(["errors"]) == 0
    assert seen
    assert not any(seen)
    assert gc.isenabled()
