"""Each smaller rewrite, and each of its refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.optimized import checked


def _normal(*sizes: int) -> Any:
    return RNG.standard_normal(sizes).astype(np.float32)


def _array(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def _convolved(body: str, opset: int = 18, **weights: Any) -> Any:
    text = f"(float[2, 3, 7, 6] x) => (float[a, b, c, d] y) {{ {body} }}"
    return onnx_model(text, {"w": _normal(4, 3, 3, 3), **weights}, opset=opset)


# -- scales ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "c = Conv(x, w)  m = Mul(c, k)  y = Add(b, m)",
        "c = Conv(x, w)  m = Sub(c, k)  y = Sub(b, m)",
        "c = Conv(x, w)  m = Div(c, k)  y = Mul(m, s)",
        "c = Conv(x, w)  y = BatchNormalization(c, v, u, u, p)",
        "c = Conv(x, w, v)  n = BatchNormalization<epsilon = 0.01>(c, v, u, u, p)  y = Mul(n, k)",
    ],
)
def test_factors_and_terms_go_into_the_convolution(body: str):
    held: dict[str, Any] = {"k": 1 + np.abs(_normal(4, 1, 1)), "b": _normal(1, 4, 1, 1), "s": np.float32(3)}
    held |= {"v": _normal(4), "u": _normal(4), "p": np.abs(_normal(4)) + 0.5}
    found = checked(_convolved(body, **{name: array for name, array in held.items() if name in body}))
    assert found.operators == {"Conv": 1}


@pytest.mark.parametrize(
    "body",
    [
        "c = Conv(x, w)  y = Mul(c, row)",
        "c = Conv(x, w)  y = Mul(c, c)",
        "c = Conv(x, w, far)  y = Div(k, c)",
        "c = Conv(x, w)  r = Relu(c)  m = Mul(c, k)  y = Add(r, m)",
    ],
)
def test_other_products_stay(body: str):
    held: dict[str, Any] = {"row": _normal(1, 4), "k": _normal(4, 1, 1), "far": np.full(4, 90, np.float32)}
    found = checked(_convolved(body, **{name: array for name, array in held.items() if name in body}))
    assert "scales" not in found.summary.done


# -- pads --------------------------------------------------------------------------------------------------------------


def test_pads_go_into_the_convolution():
    body = 'p = Pad(x, n)  y = Conv<pads = [0, 1, 1, 0], auto_pad = "NOTSET">(p, w)'
    found = checked(_convolved(body, n=_array(0, 0, 1, 2, 0, 0, 0, 3)))
    assert found.operators == {"Conv": 1}


@pytest.mark.parametrize(
    ("pad", "convolution", "numbers", "reason"),
    [
        ('Pad<mode = "edge">(x, n)', "", (0, 0, 1, 1, 0, 0, 1, 1), "repeats"),
        ("Pad(x, n, one)", "", (0, 0, 1, 1, 0, 0, 1, 1), "not zero"),
        ("Pad(x, n, z, ax)", "", (1, 1), "not known"),
        ("Pad(x, n)", "", (0, 0, -1, 1, 0, 0, 1, 1), "negative"),
        ("Pad(x, n)", "", (1, 0, 1, 1, 0, 0, 1, 1), "batch"),
        ("Pad(x, n)", '<auto_pad = "SAME_UPPER">', (0, 0, 1, 1, 0, 0, 1, 1), "by rule"),
    ],
)
def test_other_pads_stay(pad: str, convolution: str, numbers: tuple[int, ...], reason: str):
    held: dict[str, Any] = {"n": _array(*numbers), "one": np.float32(1), "z": np.float32(0), "ax": _array(3)}
    body = f"p = {pad}  y = Conv{convolution}(p, w)"
    found = checked(_convolved(body, **{name: array for name, array in held.items() if name in pad}))
    assert any(reason in given for given in found.reasons), found.reasons


# -- clips -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "operators"),
    [
        ("m = Max(x, low)  y = Min(m, high)", {"Clip": 1}),
        ("m = Min(high, x)  y = Max(low, m)", {"Clip": 1}),
        ("y = Max(x, low)", {"Relu": 1}),
        ("y = Max(low, x)", {"Relu": 1}),
        ("y = Max(x, high)", {"Max": 1}),
        ("m = Max(x, high)  y = Min(m, low)", {"Max": 1, "Min": 1}),
        ("m = Max(x, row)  y = Min(m, high)", {"Max": 1, "Min": 1}),
        ("m = Max(x, low, x)  y = Min(m, high)", {"Max": 1, "Min": 1}),
    ],
)
def test_bounds(body: str, operators: dict[str, int]):
    held: dict[str, Any] = {"low": np.float32(0), "high": _normal(1, 1) ** 2 + 0.5, "row": _normal(6)}
    found = checked(_convolved(body, **{name: array for name, array in held.items() if name in body}))
    assert found.operators == operators


# -- gathers -----------------------------------------------------------------------------------------------------------


def test_parts_of_a_shuffle_are_taken_at_once():
    text = """(float[1, 8, 5, 4] x) => (float[1, 5, 5, 4] y, float[1, 3, 5, 4] z, float[1, 2, 5, 4] v)
    { a = Reshape(x, s)  b = Transpose<perm = [0, 2, 1, 3, 4]>(a)  c = Reshape(b, t)  y, z = Split<axis = 1>(c, p)
      e = Slice(c, two, six, one, two)  f = Gather<axis = 1>(c, o)  v = Add(e, f) }"""
    held: dict[str, Any] = {
        "s": _array(1, 2, 4, 5, 4),
        "t": _array(1, 8, 5, 4),
        "p": _array(5, 3),
        "one": _array(1),
        "two": _array(2),
    }
    found = checked(onnx_model(text, {**held, "six": _array(6), "o": _array(7, 7)}))
    assert found.operators["Reshape"] == found.operators["Split"] == 0 and found.operators["Gather"] >= 3


# -- constants and identities ------------------------------------------------------------------------------------------


def test_a_constant_of_other_sizes_than_inferred_stays_a_node():
    """ONNX infers no row for the places of a scalar, and declares by that what stands behind; runtimes make one."""
    text = "(float[3] x) => (int64[a, b] y, float[3] z) { n = NonZero(s)  y = Add(n, one)  z = Relu(x) }"
    proto = onnx_model(text, s=np.float32(2), one=np.int64(1))
    onnx.checker.check_model(proto, full_check=True)
    assert checked(proto).operators["NonZero"] == 1
    assert "NonZero" not in checked(onnx_model(text, s=np.array([2, 0, 3], np.float32), one=np.int64(1))).operators


def test_sizes_that_are_known_are_constants():
    text = """(float[n, 4, 6] x) => (float[n, 24] y)
    { s = Shape(x)  a = Gather(s, one)  b = Slice(s, two, three)  c = Mul(a, b)  d = Concat<axis = 0>(minus, c)
      y = Reshape(x, d) }"""
    numbers = {"one": _array(1), "two": _array(2), "three": _array(3), "minus": _array(-1)}
    assert checked(onnx_model(text, numbers), {"x": _normal(5, 4, 6)}).operators == {"Reshape": 1}


@pytest.mark.parametrize("body", ["k = Expand(s, big)  y = Add(x, k)", "k = ConstantOfShape(big)  y = Add(x, k)"])
def test_constants_that_would_be_large_stay(body: str):
    model = onnx_model(f"(float[50, 60] x) => (float[50, 60] y) {{ {body} }}", s=np.float32(2), big=_array(50, 60))
    assert len(checked(model).model.graph.node) == 2


def test_quantized_weights_stay_quantized():
    text = "(float[3, 4] x) => (float[3, 5] y) { f = DequantizeLinear(q, s, z)  y = MatMul(x, f) }"
    held: dict[str, Any] = {"q": RNG.integers(-9, 9, (4, 5)).astype(np.int8), "s": np.float32(0.1), "z": np.int8(0)}
    assert checked(onnx_model(text, held)).operators == {"DequantizeLinear": 1, "MatMul": 1}


def test_nodes_that_change_nothing_go():
    text = """(float[3, 4] x) => (float[3, 4] y)
    { a = Identity(x)  b = Cast<to = 1>(a)  c, m = Dropout(b)  d = Reshape(c, s)  e = Transpose<perm = [0, 1]>(d)
      f = Concat<axis = 0>(e)  g = Pad(f, n)  y = Relu(g) }"""
    assert checked(onnx_model(text, s=_array(3, -1), n=_array(0, 0, 0, 0))).operators == {"Relu": 1}


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("(float[2, 3] x) => (float[2, 3] x) {}", {}),
        ("(float[2, 3] x) => (float[2, 3] y) { y = Identity(x) }", {}),
        ("(float[2, 3] x) => (float[2, 3] y, float[2, 3] z) { y = Relu(x)  z = Identity(y) }", {}),
        ("(float[2, 3] x) => (float[2, 3] y, float[2] z) { y = Relu(x)  z = Identity(w) }", {"w": _normal(2)}),
        ("(float[2, 3] x) => (float[2, 3] y, float[2] w) { y = Relu(x) }", {"w": _normal(2)}),
        ("(float[2, 3] x) => (float[3, 2] z, float[2, 3] y) { z = Transpose(x)  y = Transpose(z) }", {}),
    ],
)
def test_outputs_that_are_inputs_or_constants(text: str, held: dict[str, Any]):
    checked(onnx_model(text, held), interpreted=False)


def test_an_input_with_a_value_is_a_constant():
    model = onnx_model("(float[2, 3] x, float[3] w) => (float[2, 3] y) { y = Add(x, w) }", w=_normal(3), ir_version=3)
    found = checked(model)
    assert [value.name for value in found.model.graph.input] == ["x"] and found.summary.done["default-inputs"] == 1


def test_old_operator_sets_are_left():
    found = checked(onnx_model("(float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }", opset=8), interpreted=False)
    assert any("operator set" in reason for reason in found.reasons)


# -- sums and aligned channels -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("names", "operator"), [("x, w", "Add"), ("x, w, x", "Sum"), ("x", "Sum")])
def test_a_sum_of_two_is_an_add(names: str, operator: str):
    held = {"w": _normal(2, 3)} if "w" in names else {}
    found = checked(onnx_model(f"(float[2, 3] x) => (float[2, 3] y) {{ y = Sum({names}) }}", held))
    assert found.operators == {operator: 1}


def _sandwich(channels: int, body: str, **more: Any) -> Any:
    """Dense, depthwise and dense convolutions around `channels` channels, which a body makes s of."""
    text = f"""(float[1, 3, 5, 5] x) => (float[1, 2, a, b] y)
    {{ c = Conv(x, v, e)  {body}  y = Conv(s, w) }}"""
    held = {"v": _normal(channels, 3, 1, 1), "e": _normal(channels), "w": _normal(2, channels, 1, 1)}
    return onnx_model(text, {**held, "d": _normal(channels, 1, 3, 3), **more})


def _groups(found: Any) -> set[int]:
    nodes = [node for node in found.model.graph.node if node.op_type == "Conv"]
    return {attribute.i for node in nodes for attribute in node.attribute if attribute.name == "group"}


@pytest.mark.parametrize("channels", [25, 26, 27, 58])
def test_depthwise_channels_are_aligned(channels: int):
    body = f"r = Relu(c)  p = Conv<group = {channels}>(r, d, e)  q = Sigmoid(p)  s = Conv<group = {channels}>(q, o)"
    found = checked(_sandwich(channels, body, o=_normal(channels, 1, 1, 1)))
    assert found.summary.done["aligned-channels"] == 1 and _groups(found) == {-(-channels // 4) * 4}


@pytest.mark.parametrize(
    ("channels", "body"),
    [
        (28, "s = Conv<group = 28>(c, d)"),
        (10, "s = Conv<group = 10>(c, d)"),
        (26, "g = Log(c)  s = Conv<group = 26>(g, d)"),
        (26, "t = Conv<group = 26, pads = [1, 1, 1, 1]>(c, d)  s = Add(t, c)"),
        (26, "t = Conv<group = 26>(c, d)  s = Softmax<axis = 1>(t)"),
        (26, "i = Identity(d)  k = Abs(x)  f = ReduceMax<keepdims = 0>(k)  m = Mul(d, f)  s = Conv<group = 26>(c, m)"),
    ],
)
def test_other_channels_stay(channels: int, body: str):
    model = _sandwich(channels, body)
    feeds = {"x": np.abs(_normal(1, 3, 5, 5)) + 0.5}
    if "Log" in body:
        for tensor in model.graph.initializer:
            if tensor.name in "ve":
                tensor.CopyFrom(numpy_helper.from_array(np.abs(numpy_helper.to_array(tensor)) + 0.5, tensor.name))
    assert "aligned-channels" not in checked(model, feeds).summary.done
