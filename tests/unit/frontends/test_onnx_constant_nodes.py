"""Nodes that read constants only: their own lowering is evaluated while the model is read, and gives what it gives at
run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp

import fuseline
from fuseline.evaluation import evaluate_module, main_function
from fuseline.frontends.onnx import read_onnx
from fuseline.frontends.onnx.constant_nodes import INPUT_LIMIT
from fuseline.ir.context import CompilerContext, new_context
from tests.draws import RNG, generator
from tests.graphs.onnx_text import onnx_model
from tests.one_node import by_onnxruntime, feeds_of, one_node

Array = NDArray[Any]
_HELD = generator(__name__)
X = _HELD.standard_normal((2, 3, 4)).astype(np.float32)
CHANNELS = [np.abs(_HELD.standard_normal(3)).astype(np.float32) for _ in range(4)]

NODES: dict[str, tuple[Any, ...]] = {
    "norm of absolute values": ("LpNormalization", [X], {"axis": 1, "p": 1}, 18, 1),
    "batch statistics are given": ("BatchNormalization", [X, *CHANNELS], {}, 13, 1),
    "unsigned": ("BitwiseNot", [np.arange(9, dtype=np.uint8)], {}, 18, 1),
    "truth": ("IsNaN", [np.array([1, np.nan, 3], np.float32)], {}, 18, 1),
    "two outputs": ("TopK", [X, np.array([2])], {"axis": 1}, 18, 2),
    "places in all channels": ("MaxPool", [X], {"kernel_shape": [2]}, 18, 2),
    "a view": ("Flatten", [X], {"axis": 1}, 18, 1),
    "a slice that starts far below and runs back": (
        "Slice",
        [X, *(np.array([v]) for v in (-99, -2147483648, 2, -2))],
        {},
        18,
        1,
    ),
    "k is an attribute": ("TopK", [X], {"k": 2, "axis": 2}, 9, 2),
    "shrinking reads the element behind": (
        "Resize",
        [X, np.array([1, 1, 0.6], np.float32)],
        {"mode": "nearest"},
        10,
        1,
    ),
    "a batch of one": ("AffineGrid", [X[:1, :2, :3], np.array([1, 1, 3, 2])], {}, 20, 1),
    "one element, exclusive": ("CumSum", [X[:, :1], np.array(1)], {"exclusive": 1}, 14, 1),
    "one element, exclusive, backwards": ("CumSum", [X[:, :1], np.array(1)], {"exclusive": 1, "reverse": 1}, 14, 1),
    "a function": ("Celu", [X], {}, 18, 1),
}


def _read(model: Any) -> tuple[ModuleOp, CompilerContext]:
    ctx = new_context()
    return read_onnx(model, ctx), ctx


def _left(module: ModuleOp) -> list[str]:
    return [op.name for op in main_function(module).body.block.ops if not isinstance(op, ConstantOp)]


@pytest.mark.parametrize("name", NODES)
def test_they_leave_constants(name: str):
    op_type, inputs, attributes, opset, outputs = NODES[name]
    model = one_node(op_type, inputs, attributes, opset=opset, outputs=outputs, constants=range(len(inputs)))
    module, ctx = _read(model)
    assert _left(module) == ["func.return"]
    assert len(ctx.resources) <= outputs  # what the inputs took is given back
    wanted = by_onnxruntime(one_node(op_type, inputs, attributes, opset=opset, outputs=outputs), feeds_of(inputs))
    found = evaluate_module(module, [], ctx.resources)
    for expected, value in zip(wanted, found, strict=True):
        assert expected.dtype == value.dtype
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


def _softmax(x: Array) -> Any:
    return one_node("Softmax", [x], {"axis": 0}, constants=[0])


def test_large_constants_wait_for_the_pass():
    x = RNG.standard_normal(INPUT_LIMIT + 1).astype(np.float32)
    assert "linalg.generic" in _left(_read(_softmax(x))[0])
    assert _left(_read(_softmax(x[1:]))[0]) == ["func.return"]


def _dequantized(values: Array, scale: Array) -> Any:
    return one_node("DequantizeLinear", [values, scale], {"axis": 0}, constants=[0, 1])


@pytest.mark.parametrize("shape", [(3, 2), (2, 3, 1, 1), (1, 1, 5, 5), (1, 1)])
def test_weights_stay_integers_until_products_took_them(shape: tuple[int, ...]):
    values = RNG.integers(-128, 128, shape).astype(np.int8)
    scale = RNG.uniform(0.1, 1, shape[0]).astype(np.float32)
    assert "linalg.generic" in _left(_read(_dequantized(values, scale))[0])
    assert _left(_read(_dequantized(values.ravel(), scale[0]))[0]) == ["func.return"]


@pytest.mark.parametrize("kernel", [1, 3])
def test_few_weights_are_multiplied_as_integers(kernel: int):
    inputs, outputs = int(RNG.integers(1, 4)), int(RNG.integers(2, 5))
    size = [1, inputs, *map(int, RNG.integers(7, 20, 2))]
    text = f"(float{size} x) => (y) {{ q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)"
    text += f"  f = DequantizeLinear(w, t)  c = Conv<pads=[{', '.join([str(kernel // 2)] * 4)}]>(d, f)"
    text += "  r = QuantizeLinear(c, u, z)  y = DequantizeLinear(r, u, z) }"
    weights: dict[str, Any] = {"s": np.float32(0.02), "z": np.uint8(RNG.integers(90, 170)), "t": np.float32(0.01)}
    weights |= {"u": np.float32(0.05), "w": RNG.integers(-127, 128, (outputs, inputs, kernel, kernel)).astype(np.int8)}
    model, x = onnx_model(text, weights, opset=20), RNG.standard_normal(size).astype(np.float32)
    program = fuseline.compile(model, threads=1)
    assert [one.code for one in program.record.quantization] == []
    (found,) = program.run({"x": x}).values()
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x}).values()
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_allclose(found, by_onnxruntime(model, {"x": x})[0], atol=0.051)


def test_halves_are_computed_as_the_program_computes_them():
    x = RNG.standard_normal(9).astype(np.float16)
    assert "linalg.generic" in _left(_read(_softmax(x))[0])
    fed = fuseline.compile(one_node("Softmax", [x], {"axis": 0}), threads=1)(x)
    np.testing.assert_array_equal(fuseline.compile(_softmax(x), threads=1).run({})["o0"], fed)


def test_what_cannot_be_evaluated_yet_stays():
    x, w, r = (RNG.standard_normal(shape).astype(np.float32) for shape in ((3, 1, 2), (1, 3, 2), (1, 3, 3)))
    model = one_node("RNN", [x, w, r], {"hidden_size": 3}, constants=[0, 1, 2])
    assert "func.call" in _left(_read(model)[0])
    wanted = by_onnxruntime(one_node("RNN", [x, w, r], {"hidden_size": 3}), feeds_of([x, w, r]))[0]
    np.testing.assert_allclose(fuseline.compile(model, threads=1).run({})["o0"], wanted, rtol=1e-5, atol=1e-6)


def test_wild_indices_give_what_they_give_at_run_time():
    indices = np.array([0, 7]).reshape(2, 1, 1)
    fed, held = (
        one_node("GatherElements", [X, indices], {"axis": 0}, constants=positions) for positions in ((), (0, 1))
    )
    wanted = fuseline.compile(fed, threads=1).run(feeds_of([X, indices]))["o0"]
    np.testing.assert_array_equal(fuseline.compile(held, threads=1).run({})["o0"], wanted)


@pytest.mark.parametrize("x", [[0.0, 5.0, 0.0], [1.0, 5.0, 0.0]])
def test_squeezing_a_computed_size_gives_the_rank_that_the_run_tells(x: list[float]):
    model = onnx_model("(float[3] x) => (y) { p = NonZero(x)  y = Squeeze(p) }")
    feeds = {"x": np.array(x, np.float32)}
    found, wanted = fuseline.compile(model, threads=1).run(feeds)["y"], by_onnxruntime(model, feeds)[0]
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found, wanted)
