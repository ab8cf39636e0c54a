"""Modules that are put off: loaded by what asks them for something, and by nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from fuseline.frontends.onnx.deferred_modules import deferred


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "counted_module.py").write_text("import builtins\nbuiltins.loads_of_it += 1\nVALUE = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("builtins.loads_of_it", 0, raising=False)
    monkeypatch.delitem(sys.modules, "counted_module", raising=False)
    return "counted_module"


def loads() -> int:
    import builtins

    return builtins.loads_of_it  # type: ignore[attr-defined]


def test_a_module_is_loaded_once_when_it_is_asked_for_something(module: str):
    with deferred(module):
        held = __import__(module)
    assert loads() == 0 and module not in sys.modules
    assert (held.VALUE, held.VALUE, __import__(module).VALUE, loads()) == (7, 7, 7, 1)
    with pytest.raises(AttributeError, match="counted_module"):
        _ = held.absent


def test_what_is_asked_meanwhile_is_answered_and_stays_imported(module: str):
    with deferred(module):
        held = __import__(module)
        assert (held.VALUE, loads()) == (7, 1)
    assert sys.modules[module].__file__ is not None and held.VALUE == 7 and loads() == 1


def test_a_module_that_is_there_already_is_left_alone(module: str):
    there = __import__(module)
    with deferred(module):
        assert __import__(module) is there
    assert sys.modules[module] is there


COMPILE = """
import sys, fuseline, onnx.parser
text = '<ir_version: 8, opset_import: ["" : 17]> agraph (float[n] x) => (float[m] y) { y = Concat<axis = 0>(x, x) }'
model = onnx.parser.parse_model(text)
fuseline.compile(model, target="null")
assert not [name for name in sys.modules if name.partition(".")[0] == "sympy"]
import onnx_ir
assert str(onnx_ir.SymbolicDim("n") + 3) == "n + 3"
import sympy
assert sympy.Integer(3) + 4 == 7
"""


def test_a_compile_does_not_import_sympy_and_others_still_can():
    subprocess.run([sys.executable, "-c", COMPILE], check=True, timeout=120)
