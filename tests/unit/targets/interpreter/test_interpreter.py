"""The interpreter target: modules by name, compiled programs through their schedule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto

import fuseline
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.targets import create_target
from fuseline.targets.interpreter import Interpreter
from tests.small_models import SMALL_MODELS, mlp

MODULE = """func.func @main(%a: tensor<?xf32> {fuseline.name = "a"}, %b: tensor<2xi8> {fuseline.name = "b"})
    -> (tensor<?xf32> {fuseline.name = "y"}, tensor<2xi8> {fuseline.dtype = "uint8"}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %y = linalg.elementwise <exp> ins(%a : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %y, %b : tensor<?xf32>, tensor<2xi8>
}"""


def _feeds(model: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    feeds: dict[str, np.ndarray] = {}
    for item in SMALL_MODELS[model]().graph.input:
        kind = item.type.tensor_type
        shape = [d.dim_value or 3 for d in kind.shape.dim]
        integers = kind.elem_type == TensorProto.INT64
        feeds[item.name] = rng.integers(0, 4, shape) if integers else rng.standard_normal(shape).astype(np.float32)
    return feeds


def test_a_module_runs_by_name():
    program = Interpreter(parse_module(MODULE, new_context()))
    assert program.inputs == ("a", "b") and program.outputs == ("y", "result1")
    a, b = np.array([0.0, 1.0, 2.0], np.float32), np.array([200, 7], np.uint8)
    out = program.run({"a": a, "b": b})
    np.testing.assert_allclose(out["y"], np.exp(a), rtol=1e-6)
    assert out["result1"].dtype == np.uint8 and out["result1"].tolist() == [200, 7]
    assert out["result1"] is not b and not np.shares_memory(out["result1"], b)


def test_double_is_more_accurate():
    a, b = np.linspace(-3, 3, 50), np.zeros(2, np.int8)
    out = Interpreter(parse_module(MODULE, new_context()), double=True).run({"a": a, "b": b})
    np.testing.assert_allclose(out["y"], np.exp(a), rtol=1e-15)


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({"a": np.ones(3, np.float32)}, "E0202 .b."),
        ({"a": np.ones(3, np.float32), "b": np.ones(2, np.int8), "c": 1}, "E0201 .c."),
        ({"a": np.ones(3, np.float64), "b": np.ones(2, np.int8)}, "E0305.*got float64"),
        ({"a": np.ones((3, 1), np.float32), "b": np.ones(2, np.int8)}, r"E0305.*got shape \(3, 1\)"),
        ({"a": np.ones(3, np.float32), "b": np.ones(3, np.int8)}, r"E0305.*got shape \(3,\)"),
        ({"a": np.ones(3, np.float32), "b": np.ones(2, np.int16)}, "E0305.*got int16"),
    ],
)
def test_wrong_feeds_are_refused(feeds: dict[str, np.ndarray], message: str):
    with pytest.raises(FuselineError, match=message):
        Interpreter(parse_module(MODULE, new_context())).run(feeds)


def test_a_module_without_a_single_entry_is_refused():
    text = "func.func @f() { return }\nfunc.func @g() { return }"
    with pytest.raises(FuselineError, match="E0305.*one public function, found 2"):
        Interpreter(parse_module(text, new_context()))


@pytest.mark.models
@pytest.mark.parametrize("model", SMALL_MODELS)
def test_a_compiled_program_runs_on_its_planned_arena(model: str):
    feeds = _feeds(model)
    proto = SMALL_MODELS[model]()
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
    compiled = fuseline.compile(proto, target="interpreter")
    for a, b in zip(expected, compiled.run(feeds).values(), strict=True):
        np.testing.assert_allclose(b, np.asarray(a), rtol=1e-4, atol=1e-5)


def test_an_interpreted_program_cannot_be_saved(tmp_path: Path):
    compiled = fuseline.compile(mlp(), target="interpreter")
    with pytest.raises(FuselineError, match="E0502.*no code to save"):
        compiled.save(tmp_path / "m.fuse")
    assert not (tmp_path / "m.fuse").exists()


def test_the_interpreter_has_no_variants():
    with pytest.raises(FuselineError, match="E0501.*no variant 'fast'"):
        create_target("interpreter:fast")
