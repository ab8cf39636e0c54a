"""Parts between Transposes run in the order of axes that moves least."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.optimized import checked

IN, OUT = "perm = [0, 3, 1, 2]", "perm = [0, 2, 3, 1]"


def _normal(*sizes: int) -> Any:
    return RNG.standard_normal(sizes).astype(np.float32)


def _between(body: str, *, size: int = 6, channels: int = 4, opset: int = 18, **weights: Any) -> Any:
    """Two convolutions with a body in NHWC between them, from t to u."""
    text = f"""(float[1, {channels}, {size}, {size}] x) => (float[1, {channels}, a, b] y)
    {{ c = Conv(x, w)  t = Transpose<{OUT}>(c)  {body}  v = Transpose<{IN}>(u)  y = Conv(v, w) }}"""
    return onnx_model(text, {"w": _normal(channels, channels, 1, 1), **weights}, opset=opset)


@pytest.mark.parametrize(
    "body",
    [
        "u = Relu(t)",
        "a1 = Mul(t, k)  u = Add(a1, k)",
        "u = Where(m, t, s)",
        "i = Neg(t)  u = Concat<axis = 3>(t, i)",
        "i = Neg(t)  u = Concat<axis = -2>(i, t)",
        "p, q = Split<axis = 2>(t, halves)  u = Concat<axis = 1>(p, q)",
        "u = Pad(t, pads, s)",
        'u = Pad<mode = "reflect">(t, pads)',
        "u = Pad(t, two, s, last)",
        "u = Slice(t, zeros, twos, last)",
        "u = Slice(t, zeros, twos)",
        "u = Softmax<axis = -1>(t)",
        "r = ReduceMean<keepdims = 1>(t, middle)  u = Mul(t, r)",
        "r = ReduceMax(t)  u = Mul(t, r)",
        "u = Gather<axis = 1>(t, order)",
        'u = Resize<mode = "nearest">(t, "", scales)',
        'u = Resize<mode = "linear", axes = [1, 2]>(t, "", "", fives)',
        "u = Clip(t, s, big)",
        "u = PRelu(t, k)",
        "u = HardSwish(t)",
    ],
)
def test_what_does_not_care_for_the_order_is_turned(body: str):
    weights: dict[str, Any] = {
        "k": _normal(4),
        "m": RNG.integers(0, 2, (6, 1, 4)).astype(bool),
        "s": np.float32(-0.25),
        "big": np.float32(1.5),
        "halves": np.array([3, 3]),
        "pads": np.array([0, 1, 2, 0, 0, 0, 1, 0]),
        "two": np.array([1, 2, 2, 1]),
        "last": np.array([1, -2]),
        "zeros": np.array([0, 1]),
        "twos": np.array([1, 4]),
        "middle": np.array([1, 2]),
        "order": np.array([3, 0, 1]),
        "scales": np.array([1, 2, 2, 1], np.float32),
        "fives": np.array([5, 7]),
    }
    model = _between(body, **{name: value for name, value in weights.items() if name in body})
    if "axis = 3>" in body:
        model.graph.node[-1].input[1] = "wide"
        model.graph.initializer.append(numpy_helper.from_array(_normal(4, 8, 1, 1), "wide"))
    found = checked(model)
    assert not found.operators["Transpose"], found.operators
    assert found.summary.done["relayout"] >= 1


def test_quantization_per_channel_is_turned():
    body = "q = QuantizeLinear<axis = 3>(t, k, z)  u = DequantizeLinear<axis = -1>(q, k, z)"
    found = checked(_between(body, k=np.abs(_normal(4)) + 0.1, z=RNG.integers(-5, 5, 4).astype(np.int8)))
    assert not found.operators["Transpose"] and found.operators["QuantizeLinear"] == 1


def test_the_best_class_is_found_in_the_order_that_is_there():
    text = f"""(float[2, 5, 6, 7] x) => (int64[2, 6, 7] y)
    {{ t = Transpose<{OUT}>(x)  r = Relu(t)  y = ArgMax<axis = 3, keepdims = 0>(r) }}"""
    found = checked(onnx_model(text))
    assert found.operators == {"Relu": 1, "ArgMax": 1}


@pytest.mark.parametrize("order", [[0, 1, 3, 2], [0, 3, 2, 1]])
def test_a_result_without_its_axis_must_come_out_in_order(order: list[int]):
    text = f"""(float[2, 5, 6, 7] x) => (int64[a, b, c] y)
    {{ t = Transpose<perm = {order}>(x)  r = Relu(t)  y = ArgMax<axis = 1, keepdims = 0>(r) }}"""
    checked(onnx_model(text))


def test_a_graph_output_is_turned_back():
    text = f"""(float[1, 4, 6, 6] x) => (float[1, 6, 6, 4] y, float[1, 4, 6, 6] z)
    {{ c = Conv(x, w)  t = Transpose<{OUT}>(c)  y = Relu(t)  n = Neg(y)  v = Transpose<{IN}>(n)  z = Conv(v, w) }}"""
    found = checked(onnx_model(text, w=_normal(4, 4, 1, 1)))
    assert found.operators["Transpose"] == 1


def test_attention_keeps_its_transposes():
    text = """(float[2, 8, 3, 4] q, float[2, 8, 3, 4] k) => (float[2, 8, 3, 8] y)
    { a = Transpose<perm = [0, 2, 1, 3]>(q)  b = Transpose<perm = [0, 2, 3, 1]>(k)  s = MatMul(a, b)
      h = Mul(s, half)  p = Softmax(h)  y = Transpose<perm = [0, 2, 1, 3]>(p) }"""
    found = checked(onnx_model(text, half=np.float32(0.5)))
    assert found.operators["Transpose"] == 3 and "relayout" not in found.summary.done


def test_symbolic_sizes_are_turned_too():
    text = f"""(float[n, h, w, 4] x) => (float[n, 4, h2, w2] y)
    {{ r = Relu(x)  v = Transpose<{IN}>(r)  c = Conv(v, k)  t = Transpose<{OUT}>(c)  s = Sigmoid(t)  m = Mul(t, s)
       u = Transpose<{IN}>(m)  y = Conv(u, k) }}"""
    found = checked(onnx_model(text, k=_normal(4, 4, 1, 1)), {"x": _normal(2, 5, 7, 4)})
    assert found.operators["Transpose"] == 1


def test_a_value_that_a_branch_captures_is_turned_back():
    text = f"""(float[1, 4, 6, 6] x, bool b) => (float[1, 6, 6, 4] y, float[1, 4, 6, 6] z)
    {{ c = Conv(x, w)  t = Transpose<{OUT}>(c)  r = Relu(t)  n = Neg(r)  v = Transpose<{IN}>(n)  z = Conv(v, w)
       y = If(b) <then_branch = f () => (p) {{ p = Abs(r) }}, else_branch = g () => (q) {{ q = Neg(r) }}> }}"""
    model = onnx_model(text, w=_normal(4, 4, 1, 1))
    for flag in (False, True):
        checked(model, {"x": _normal(1, 4, 6, 6), "b": np.array(flag)}, interpreted=False)


def test_random_chains():
    for _ in range(12):
        rank, names = int(RNG.integers(2, 5)), ["x"]
        lines: list[str] = []
        for number in range(int(RNG.integers(3, 10))):
            kind, source = RNG.integers(0, 4), names[int(RNG.integers(max(0, len(names) - 3), len(names)))]
            lines.append(
                f"v{number} = Transpose<perm = {[int(axis) for axis in RNG.permutation(rank)]}>({source})"
                if kind < 2
                else f"v{number} = {RNG.choice(['Relu', 'Abs', 'Sigmoid'])}({source})"
                if kind == 2
                else f"v{number} = Softmax<axis = {int(RNG.integers(-rank, rank))}>({source})"
            )
            names.append(f"v{number}")
        dims = ", ".join(str(size) for size in RNG.integers(1, 6, rank))
        other = names[int(RNG.integers(1, len(names)))]
        ends = ", ".join(
            f"float[{', '.join(f'{axis}{n}' for axis in 'abcd'[:rank])}] {name}"
            for n, name in enumerate(dict.fromkeys((names[-1], other)))
        )
        checked(onnx_model(f"(float[{dims}] x) => ({ends}) {{ {'  '.join(lines)} }}"), interpreted=False)
