"""Products and convolutions of quantised tensors against ONNX's reference, on the CPU and the interpreter; which of
them are in integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

import fuseline
from tests.graphs.onnx_text import declared, element_of, onnx_model

Array = NDArray[Any]
Case = tuple[onnx.ModelProto, dict[str, Array]]


def bytes_of(rng: np.random.Generator, dtype: str, *shape: int) -> Array:
    """Numbers of the whole range, the extremes often among them."""
    info = np.iinfo(dtype)
    found = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    found[rng.random(shape) < 0.2] = info.min
    found[rng.random(shape) < 0.1] = info.max
    return found


def model(
    nodes: str, feeds: dict[str, Array], output: str, constants: dict[str, Any], dims: dict[str, list[Any]]
) -> Case:
    text = f"({declared(feeds, dims)}) => ({element_of(output)}[] y) {{ {nodes} }}"
    return onnx_model(text, constants, opset=21), feeds


def scales(rng: np.random.Generator, *shape: int) -> Array:
    return (0.002 + 0.01 * rng.random(shape)).astype(np.float32)


def qdq_convolution(rng: np.random.Generator, x: str, w: str, group: int = 1, size: int = 3) -> Case:
    """Both zero points, a scale per channel, a bias of 32 bits, and the sum read by two."""
    channels, filters = 8, 24
    window = (filters, channels // group, size, size)
    constants = {
        "xs": scales(rng)[()], "xz": bytes_of(rng, x, 1)[0], "ws": scales(rng, filters), "w": bytes_of(rng, w, *window),
        "wz": np.full(filters, bytes_of(rng, w, 1)[0]), "b": rng.integers(-9999, 9999, filters).astype(np.int32),
        "ys": np.float32(0.05),
        "bs": scales(rng, filters) * np.float32(1e-3), "yz": np.uint8(101),
    }  # fmt: skip
    nodes = (
        "xf = DequantizeLinear(x, xs, xz)  "
        "wf = DequantizeLinear<axis = 0>(w, ws, wz)  "
        "bf = DequantizeLinear<axis = 0>(b, bs)  "
        f"c = Conv<pads = {[size // 2] * 4}, strides = [2, 1], group = {group}>(xf, wf, bf)  "
        "r = Relu(c)  "
        "q = QuantizeLinear(r, ys, yz)  "
        "d = DequantizeLinear(q, ys, yz)  "
        "y = Add(d, d)"
    )
    return model(nodes, {"x": bytes_of(rng, x, 2, channels, 9, 7)}, "float32", constants, {})


def qlinear_convolution(rng: np.random.Generator, x: str, w: str, group: int = 1, size: int = 3) -> Case:
    channels, filters = 32, 32
    window = (filters, channels // group, size, size)
    constants = {
        "xs": np.float32(0.02), "xz": bytes_of(rng, x, 1)[0], "ws": scales(rng, filters),
        "w": bytes_of(rng, w, *window),
        "wz": np.zeros(filters, w), "ys": np.float32(0.9), "yz": bytes_of(rng, x, 1)[0],
        "b": rng.integers(-999, 999, filters).astype(np.int32),
    }  # fmt: skip
    node = f"y = QLinearConv<pads = {[size // 2] * 4}, group = {group}>(x, xs, xz, w, ws, wz, ys, yz, b)"
    return model(node, {"x": bytes_of(rng, x, 1, channels, 7, 5)}, x, constants, {})


def integer_convolution(rng: np.random.Generator, x: str, w: str) -> Case:
    constants = {"w": bytes_of(rng, w, 20, 3, 3, 3), "xz": bytes_of(rng, x, 1)[0], "wz": bytes_of(rng, w, 1)[0]}
    node = "y = ConvInteger<dilations = [2, 1], pads = [1, 1, 2, 1]>(x, w, xz, wz)"
    return model(node, {"x": bytes_of(rng, x, 2, 3, 9, 8)}, "int32", constants, {})


def integer_product(rng: np.random.Generator, a: str, b: str, constant: bool) -> Case:
    """With zero points known at run time only; of a number of rows known at run time only."""
    feeds = {
        "x": bytes_of(rng, a, 3, 7, 21),
        "xz": bytes_of(rng, a, 1)[0].reshape(()),
        "bz": bytes_of(rng, b, 1)[0].reshape(()),
    }
    matrix = bytes_of(rng, b, 21, 34)
    node = "y = MatMulInteger(x, b, xz, bz)"
    constants = {"b": matrix} if constant else {}
    return model(node, feeds if constant else {**feeds, "b": matrix}, "int32", constants, {"x": ["n", 7, 21]})


def qlinear_product(rng: np.random.Generator, a: str) -> Case:
    constants = {
        "xs": np.float32(0.03), "xz": bytes_of(rng, a, 1)[0], "w": bytes_of(rng, "int8", 40, 17), "ws": scales(rng, 17),
        "wz": np.zeros(17, np.int8),
        "ys": np.float32(0.2), "yz": bytes_of(rng, a, 1)[0],
    }  # fmt: skip
    node = "y = QLinearMatMul(x, xs, xz, w, ws, wz, ys, yz)"
    return model(node, {"x": bytes_of(rng, a, 11, 40)}, a, constants, {})


def dynamic_product(rng: np.random.Generator) -> Case:
    constants = {"w": bytes_of(rng, "int8", 24, 18), "ws": np.float32(0.01), "wz": np.int8(0)}
    nodes = (
        "q, s, z = DynamicQuantizeLinear(x)  "
        "i = MatMulInteger(q, w, z, wz)  "
        "f = Cast<to = 1>(i)  "
        "sw = Mul(s, ws)  "
        "y = Mul(f, sw)"
    )
    return model(nodes, {"x": rng.standard_normal((5, 24)).astype(np.float32)}, "float32", constants, {})


def attention_scores(rng: np.random.Generator) -> Case:
    """A product of two tensors that are both known at run time only."""
    nodes = (
        "af = DequantizeLinear(a, as, az)  "
        "bf = DequantizeLinear(b, bs, bz)  "
        "bt = Transpose<perm = [0, 2, 1]>(bf)  "
        "y = MatMul(af, bt)"
    )
    constants = {"as": np.float32(0.02), "az": np.uint8(77), "bs": np.float32(0.01), "bz": np.int8(-5)}
    return model(
        nodes, {"a": bytes_of(rng, "uint8", 2, 13, 30), "b": bytes_of(rng, "int8", 2, 9, 30)}, "float32", constants, {}
    )


def weight_only_product(rng: np.random.Generator, rows: int) -> Case:
    nodes = "wf = DequantizeLinear<axis = 1>(w, ws)  y = MatMul(x, wf)"
    constants = {"w": bytes_of(rng, "int8", 64, 96), "ws": scales(rng, 96)}
    return model(nodes, {"x": rng.standard_normal((rows, 64)).astype(np.float32)}, "float32", constants, {})


MADE: dict[str, Callable[[np.random.Generator], Case]] = {
    "qdq convolution, u8 x i8": lambda rng: qdq_convolution(rng, "uint8", "int8"),
    "qdq convolution, i8 x u8": lambda rng: qdq_convolution(rng, "int8", "uint8"),
    "qdq convolution, 1x1": lambda rng: qdq_convolution(rng, "uint8", "int8", size=1),
    "qdq convolution, depthwise": lambda rng: qdq_convolution(rng, "uint8", "int8", group=8),
    "QLinearConv, u8 x i8": lambda rng: qlinear_convolution(rng, "uint8", "int8"),
    "QLinearConv, i8 x i8, 1x1": lambda rng: qlinear_convolution(rng, "int8", "int8", size=1),
    "QLinearConv, groups": lambda rng: qlinear_convolution(rng, "uint8", "int8", group=4),
    "QLinearConv, wide groups": lambda rng: qlinear_convolution(rng, "uint8", "uint8", group=2),
    "QLinearConv, depthwise": lambda rng: qlinear_convolution(rng, "uint8", "int8", group=32),
    "ConvInteger": lambda rng: integer_convolution(rng, "uint8", "int8"),
    "ConvInteger, u8 x u8": lambda rng: integer_convolution(rng, "uint8", "uint8"),
    "MatMulInteger": lambda rng: integer_product(rng, "uint8", "int8", True),
    "MatMulInteger, i8 x u8": lambda rng: integer_product(rng, "int8", "uint8", True),
    "MatMulInteger, run time": lambda rng: integer_product(rng, "uint8", "int8", False),
    "QLinearMatMul": lambda rng: qlinear_product(rng, "uint8"),
    "QLinearMatMul, i8": lambda rng: qlinear_product(rng, "int8"),
    "dynamic quantisation": dynamic_product,
    "attention scores": attention_scores,
    "weights only": lambda rng: weight_only_product(rng, 13),
    "weights only, one row": lambda rng: weight_only_product(rng, 1),
}
STEP = {"qdq convolution": 0.1, "QLinear": 1}
"""One step of the quantised result, twice where it is added to itself: what a rounding the other way at a tie makes."""


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("name", MADE)
def test_results_are_those_of_the_reference(name: str, target: str):
    proto, feeds = MADE[name](np.random.default_rng(len(name)))
    (expected,) = ReferenceEvaluator(proto).run(None, feeds)
    (found,) = fuseline.compile(proto, target=target, threads=1).run(feeds).values()
    assert found.dtype == np.asarray(expected).dtype and found.shape == np.asarray(expected).shape
    error = np.abs(found.astype(np.float64) - np.asarray(expected).astype(np.float64))
    step = next((step for kind, step in STEP.items() if name.startswith(kind)), 0)
    assert error.max() <= step + 1e-5 * np.abs(np.asarray(expected, np.float64)).max() * (found.dtype.kind == "f")
    assert (error > step / 2).mean() < 0.01 if step else True


IN_INTEGERS = [
    "qdq convolution, u8 x i8",
    "qdq convolution, 1x1",
    "QLinearConv, wide groups",
    "ConvInteger",
    "MatMulInteger",
    "QLinearMatMul",
]


@pytest.mark.parametrize("name", [*IN_INTEGERS, "dynamic quantisation", "attention scores"])
def test_products_run_in_tiles(name: str):
    proto, _ = MADE[name](np.random.default_rng(1))
    record = fuseline.compile(proto, target="cpu", threads=1).record
    families = {part for dispatch in record.dispatches for part in dispatch.family.split("+")}
    assert families & {"contraction", "convolution", "blocked"} and "loop-nest" not in families
    assert not any("not computed in integers" in note for note in record.notes)


def test_what_stays_in_f32_is_noted():
    proto, _ = MADE["qdq convolution, depthwise"](np.random.default_rng(1))
    record = fuseline.compile(proto, target="cpu", threads=1).record
    assert [note for note in record.notes if "narrow-groups" in note]


def test_weights_stay_narrow_in_the_artifact():
    proto, _ = MADE["QLinearConv, u8 x i8"](np.random.default_rng(1))
    constants = fuseline.compile(proto, target="cpu", threads=1).stats["constant_bytes"]["packed"]
    weights = 32 * 32 * 9
    assert weights <= constants < 1.1 * weights


@pytest.mark.parametrize(("numerics", "bytes_each"), [("default", 1), ("strict", 4)])
def test_weights_of_a_product_of_floats_stay_narrow_unless_numerics_are_strict(numerics: str, bytes_each: int):
    proto, feeds = MADE["weights only"](np.random.default_rng(1))
    compiled = fuseline.compile(proto, target="cpu", threads=1, numerics=numerics)
    weights = 64 * 96 * bytes_each
    assert weights <= compiled.stats["constant_bytes"]["packed"] <= weights + 1024
    (expected,) = ReferenceEvaluator(proto).run(None, feeds)
    (found,) = compiled.run(feeds).values()
    np.testing.assert_allclose(found, np.asarray(expected), rtol=0, atol=1e-5 * np.abs(np.asarray(expected)).max())
