"""NaN, infinities, signed zeros, denormals and the largest numbers through every kernel family, against ONNX's
reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx.helper import np_dtype_to_tensor_dtype

from tests.graphs.onnx_text import attributes_of

from .special_values import Array, check, edges

WINDOWS: dict[str, tuple[str, dict[str, Any]]] = {
    "largest": ("MaxPool", {"kernel_shape": [3, 3], "pads": [1] * 4}),
    "mean": ("AveragePool", {"kernel_shape": [3, 3], "pads": [1] * 4}),
    "mean with padding": ("AveragePool", {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1}),
    "global mean": ("GlobalAveragePool", {}),
    "global maximum": ("GlobalMaxPool", {}),
}
CONVOLUTIONS: dict[str, tuple[dict[str, Any], tuple[int, ...], tuple[int, ...]]] = {
    "3x3": ({"pads": [1] * 4}, (1, 8, 12, 11), (16, 8, 3, 3)),
    "large enough for minimal filtering": ({"pads": [1] * 4}, (1, 64, 24, 24), (64, 64, 3, 3)),
    "strides": ({"pads": [1] * 4, "strides": [2, 2]}, (1, 8, 12, 11), (16, 8, 3, 3)),
    "dilations": ({"pads": [2] * 4, "dilations": [2, 2]}, (1, 8, 12, 11), (16, 8, 3, 3)),
    "depthwise": ({"pads": [1] * 4, "group": 8}, (1, 8, 12, 11), (8, 1, 3, 3)),
    "groups": ({"pads": [1] * 4, "group": 2}, (1, 8, 12, 11), (16, 4, 3, 3)),
    "1x1": ({}, (1, 8, 12, 11), (16, 8, 1, 1)),
}
UNARY = [
    "Abs", "Neg", "Sign", "Relu", "Ceil", "Floor", "Round", "Sqrt", "Reciprocal", "Exp", "Log", "Tanh", "Sigmoid",
    "Erf", "Sin", "Cos", "Atan",
    "IsNaN", "IsInf",
]  # fmt: skip
BINARY = ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Less", "GreaterOrEqual", "Equal"]
ROWS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare"]


def generator(name: str) -> np.random.Generator:
    return np.random.default_rng(len(name) * 1000 + sum(map(ord, name)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", UNARY)
def test_functions_of_one_number(op: str, dtype: str):
    if (op, dtype) == ("Erf", "float64"):
        pytest.skip("the reference computes it in f32")
    check(f"y = {op}(x)", {"x": edges((3, 67), dtype, generator(op), 0.4)})


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("op", BINARY)
def test_functions_of_two_numbers(op: str, dtype: str):
    g = generator(op)
    check(f"y = {op}(x, z)", {"x": edges((3, 67), dtype, g, 0.4), "z": edges((3, 67), dtype, g, 0.4)})


@pytest.mark.parametrize("share", [0.02, 0.2])
@pytest.mark.parametrize("op", ROWS)
def test_reductions(op: str, share: float):
    """Along rows and across them."""
    x = edges((6, 33), "float32", generator(op), share)
    for axis in (0, 1):
        check(f"y = {op}(x, axes)", {"x": x}, {"axes": np.array([axis])})


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_positions_of_extremes(dtype: str, op: str, axis: int, last: int):
    """A NaN is the extreme, as in the reference; onnxruntime passes over it."""
    x = edges((9, 41), dtype, generator(f"{op}{axis}{last}"), 0.1)
    check(f"y = {op}<axis = {axis}, select_last_index = {last}>(x)", {"x": x})


@pytest.mark.parametrize("op", ["Softmax", "Hardmax"])
@pytest.mark.parametrize("length", [5, 33, 130])
def test_rows(op: str, length: int):
    x = edges((12, length), "float32", generator(f"{op}{length}"), 0.03)
    x[3, 2:4] = np.nan
    check(f"y = {op}(x)", {"x": x})


@pytest.mark.parametrize("share", [0.003, 0.05])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_contractions(dtype: str, share: float):
    """Whether large numbers overflow in a sum depends on its order: infinities stand for them."""
    g = generator(dtype)
    pair = (edges((13, 37), dtype, g, share), edges((37, 29), dtype, g, share))
    x, z = (np.where(np.abs(a) > 1e30, np.copysign(np.inf, a), a).astype(dtype) for a in pair)
    check("y = MatMul(x, z)", {"x": x, "z": z})
    check("y = MatMul(x, z)", {"x": x}, {"z": z})


FILTERED = 3e-5
"""Convolutions may be made by minimal filtering, whose larger tiles round more."""


def _pixels(shape: tuple[int, ...], g: np.random.Generator) -> Array:
    """Sums of large numbers overflow in one order and not in another: none of those."""
    x = edges(shape, "float32", g, 0.003)
    return np.where(np.isfinite(x) & (np.abs(x) > 1e3), np.float32(3), x)


@pytest.mark.parametrize("where", ["pixels", "weights"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str, where: str):
    attributes, image, weights = CONVOLUTIONS[name]
    g = generator(name)
    x, w = _pixels(image, g), g.standard_normal(weights).astype(np.float32)
    if (
        where == "weights"
    ):  # without padding: there the reference multiplies them by 0, onnxruntime and we leave them out
        x, attributes = (
            g.standard_normal(image).astype(np.float32),
            {k: v for k, v in attributes.items() if k != "pads"},
        )
        w.reshape(-1)[g.integers(0, w.size, 2)] = np.inf, np.nan
    # sums that cancel differ by more than their size allows: what is added hides it
    nodes = f"c = Conv{attributes_of(attributes)}(x, w)  y = Add(c, far)"
    check(nodes, {"x": x}, {"w": w, "far": np.array(100, np.float32)}, relative=FILTERED)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name: str, dtype: str):
    """A NaN counts in every maximum; in the reference's MaxPool only as the first of a window, so it is fed none."""
    op, attributes = WINDOWS[name]
    x = edges((2, 8, 13, 11), dtype, generator(name), 0.01)
    if op == "MaxPool":
        x = np.nan_to_num(x, nan=2, posinf=np.inf, neginf=-np.inf)
    if "mean" in name:
        x = np.where(
            np.isfinite(x) & (np.abs(x) > 1e3), 3, np.where(np.isnan(x) | np.isinf(x), x, np.abs(x) + 1)
        ).astype(dtype)
    check(f"y = {op}{attributes_of(attributes)}(x)", {"x": x})


def test_huge_arguments_of_a_sine_beside_a_nan():
    """A NaN in one lane does not keep another from the reduction that large arguments need."""
    x = np.array([np.nan, -1.7e308, 1e300, 3.0] * 5 + [1e22, np.inf, np.nan], np.float64)
    for op in ("Sin", "Cos", "Tan"):
        check(f"y = {op}(x)", {"x": np.roll(x, 1)})
        check(f"y = {op}(x)", {"x": x})


@pytest.mark.parametrize("op", ["LeakyRelu", "HardSigmoid", "Elu", "Selu"])
def test_defaults_of_attributes_are_single_precision(op: str):
    """0.01 is not a number of f32: in f64 the difference shows."""
    x = np.random.default_rng(7).standard_normal((5, 31))
    check(f"y = {op}(x)", {"x": x})


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Mod", "Max"])
def test_integers_wrap(op: str, dtype: str):
    """The smallest by -1 too."""
    g = generator(op + dtype)
    x, z = edges((3, 67), dtype, g, 0.5), edges((3, 67), dtype, g, 0.5)
    z[z == 0] = 3
    if op in ("Div", "Mod") and dtype.startswith("i"):
        x[0, 0], z[0, 0] = np.iinfo(dtype).min, -1
    check(f"y = {op}(x, z)", {"x": x, "z": z})


@pytest.mark.parametrize("op", ["Abs", "Neg", "Sign"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_the_smallest_integer(op: str, dtype: str):
    check(f"y = {op}(x)", {"x": edges((3, 67), dtype, generator(op), 0.5)})


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
@pytest.mark.parametrize("to", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_casts_of_what_no_integer_is(source: str, to: str, target: str):
    """NaN, infinities, and around every power of two that bounds an integer type."""
    bounds = [
        sign * (2.0**bits + more)
        for bits in (7, 8, 15, 16, 31, 32, 63, 64)
        for sign in (1, -1)
        for more in (-1.5, 0, 1, 2.0 ** (bits - 1))
    ]
    with np.errstate(over="ignore"):
        x = np.concatenate(
            [
                edges((3, 45), source, generator(source + to), 0.5),
                np.array([*bounds, *[0.5] * 26]).astype(source).reshape(-1, 45),
            ]
        )
    if (source, to) == ("float16", "uint32"):  # NumPy makes other numbers of these than of the same ones in f32
        x = np.where(np.isfinite(x), x, np.float16(-7))
    check(f"y = Cast<to = {np_dtype_to_tensor_dtype(np.dtype(to))}>(x)", {"x": x}, target=target)


def test_attention_with_rows_that_are_masked_whole():
    g = np.random.default_rng(3)
    q, k, v = (g.standard_normal(s).astype(np.float32) for s in ((2, 2, 9, 8), (2, 2, 8, 11), (2, 2, 11, 8)))
    mask = np.where(g.random((2, 1, 9, 11)) < 0.5, -np.inf, 0).astype(np.float32)
    mask[0, 0, 3], v[1, 0, 4, 2] = -np.inf, np.inf
    nodes = "s = MatMul(q, k)  t = Add(s, m)  p = Softmax(t)  y = MatMul(p, v)"
    check(nodes, {"q": q, "k": k, "v": v, "m": mask})
