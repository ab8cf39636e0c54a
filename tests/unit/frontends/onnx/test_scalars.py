"""Scalar arithmetic by element type, run by the interpreter against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import arith

from fuseline.frontends.onnx import scalars
from fuseline.frontends.onnx.emission import elementwise
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.ir.halves import is_storage
from tests.draws import RNG
from tests.graphs.custom_lowering import computed, read_with
from tests.graphs.onnx_text import element_of

Array = NDArray[Any]
BF16 = np.dtype(ml_dtypes.bfloat16)
INTEGERS = [np.dtype(name) for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")]
FLOATS = [np.dtype(name) for name in ("float16", "float32", "float64")] + [BF16]
NUMBERS = pytest.mark.parametrize("dtype", INTEGERS + FLOATS, ids=str)


def _numbers(dtype: np.dtype[Any], *shape: int) -> Array:
    """Over the whole range of integers, extremes first; floats of either sign."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        out = RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        out.reshape(-1)[:4] = [limits.max, limits.min, 0, 1]
        return out
    return (3 * RNG.standard_normal(shape)).astype(dtype)


def _texts(*arrays: Array) -> str:
    inputs = ", ".join(
        f"{element_of(array.dtype)}[{', '.join(map(str, array.shape))}] x{i}" for i, array in enumerate(arrays)
    )
    return f"({inputs}) => (y) {{ y = test.Op ({', '.join(f'x{i}' for i in range(len(arrays)))}) }}"


def _of(body: Callable[..., Any], dtype: np.dtype[Any], *arrays: Array) -> Array:
    """`body(b, *elements)` of `dtype` at every place of `arrays`."""
    return computed(_texts(*arrays), lambda node: elementwise(node, node.present(), dtype, body), *arrays)[0]


def _binary(name: str, dtype: np.dtype[Any], x: Array, y: Array) -> Array:
    function = getattr(scalars, name)
    return _of(lambda b, p, q: function(b, dtype, p, q), dtype, x, y)


@NUMBERS
@pytest.mark.parametrize(
    ("name", "wanted"),
    [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("maximum", np.maximum), ("minimum", np.minimum)],
)
def test_arithmetic(name: str, wanted: np.ufunc, dtype: np.dtype[Any]) -> None:
    x, y = _numbers(dtype, 5, 7), _numbers(dtype, 5, 7)[:, ::-1].copy()
    with np.errstate(over="ignore"):
        expected = wanted(x, y)
    np.testing.assert_allclose(_binary(name, dtype, x, y).astype(expected.dtype), expected, rtol=1e-6)


@NUMBERS
def test_quotients_and_remainders_by_the_dividend(dtype: np.dtype[Any]) -> None:
    x, y = _numbers(dtype, 60), _numbers(dtype, 60)[::-1].copy()
    y[y == 0] = 1
    if dtype.kind == "i":
        x[(x == np.iinfo(dtype).min) & (y == -1)] = 5  # overflows
    wide = (x.astype(object), y.astype(object)) if dtype.kind in "iu" else (x, y)
    if dtype.kind in "iu":
        quotients = [abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in zip(*wide, strict=True)]
        rests = [p - q * d for p, q, d in zip(*wide, quotients, strict=True)]
        np.testing.assert_array_equal(_binary("div", dtype, x, y), np.array(quotients, object).astype(dtype))
        np.testing.assert_array_equal(_binary("rem", dtype, x, y), np.array(rests, object).astype(dtype))
    else:
        np.testing.assert_allclose(
            _binary("div", dtype, x, y).astype(np.float64), (x / y).astype(np.float64), rtol=1e-6
        )
        np.testing.assert_array_equal(_binary("rem", dtype, x, y).astype(np.float64), np.fmod(x, y).astype(np.float64))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_a_zero_divisor_is_read_as_one(dtype: np.dtype[Any]) -> None:
    x = _numbers(dtype, 9)
    np.testing.assert_array_equal(_binary("div", dtype, x, np.zeros_like(x)), x)
    np.testing.assert_array_equal(_binary("rem", dtype, x, np.zeros_like(x)), np.zeros_like(x))


def test_a_known_divisor_is_not_looked_at() -> None:
    def lowering(node: OnnxNode) -> Tensor:
        dtype = node[0].dtype
        return elementwise(node, node.present(), dtype, lambda b, x, y: scalars.div(b, dtype, x, y))

    module, _ = read_with("(int32[4] x) => (y) { y = test.Op (x, three) }", lowering, three=np.int32(3))
    assert not [op for op in module.walk() if isinstance(op, arith.SelectOp)]


COMPARISONS: dict[str, np.ufunc] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@NUMBERS
@pytest.mark.parametrize("predicate", COMPARISONS)
def test_comparisons(predicate: str, dtype: np.dtype[Any]) -> None:
    x, y = _numbers(dtype, 40), _numbers(dtype, 40)
    y[::3] = x[::3]
    if dtype.kind not in "iu":
        x[5], y[6] = np.nan, np.nan
        x[9] = y[9] = np.nan
    found = _of(lambda b, p, q: scalars.compare(b, dtype, predicate, p, q), np.dtype(bool), x, y)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, COMPARISONS[predicate](x, y))


def test_a_choice() -> None:
    c, x, y = RNG.integers(0, 2, 20).astype(bool), _numbers(np.dtype("f4"), 20), _numbers(np.dtype("f4"), 20)
    found = _of(lambda b, *elements: scalars.select(b, *elements), x.dtype, c, x, y)
    np.testing.assert_array_equal(found, np.where(c, x, y))


KINDS = [*INTEGERS, *FLOATS, np.dtype(bool)]


@pytest.mark.parametrize("source", KINDS, ids=str)
def test_conversions_to_every_type(source: np.dtype[Any]) -> None:
    """Values that each type holds, so that the answer is no accident of a machine; integers over their whole range."""
    for target in KINDS:
        x = _numbers(source, 30) if source.kind in "iu" and target.kind in "iub" else _small(source, target)
        found = _of(lambda b, p, t=target: scalars.convert(b, p, source, t), target, x)
        wide = x.astype(np.float32) if source == BF16 else x
        np.testing.assert_array_equal(found.astype(np.float64), wide.astype(target).astype(np.float64), str(target))


def _small(source: np.dtype[Any], target: np.dtype[Any]) -> Array:
    """Whole numbers and, of floats, numbers between them; below 0 where both have such."""
    low = 0 if "u" in (source.kind, target.kind) or "b" in (source.kind, target.kind) else -100
    values = np.append(RNG.integers(low, 101, 28), [0, 1])
    return (values if source.kind in "iub" else values + RNG.choice([0, 0.25, 0.5], 30)).astype(source)


def test_negative_floats_wrap_into_narrow_unsigned_types() -> None:
    x = np.array([-1.5, -7.0, 200.9], np.float32)
    for target in (np.dtype(np.uint8), np.dtype(np.uint16)):
        found = _of(lambda b, p, t=target: scalars.convert(b, p, x.dtype, t), target, x)
        np.testing.assert_array_equal(found, np.trunc(x).astype(np.int32).astype(target))


@pytest.mark.parametrize("asked", [False, True])
def test_rounding_for_storage_is_marked(asked: bool) -> None:
    half = np.dtype(np.float16)

    def lowering(node: OnnxNode) -> Tensor:
        source = node[0].dtype
        return elementwise(node, [node[0]], half, lambda b, x: scalars.convert(b, x, source, half, asked=asked))

    module, _ = read_with("(float[4] x) => (y) { y = test.Op (x) }", lowering)
    (op,) = (op for op in module.walk() if isinstance(op, arith.TruncFOp))
    assert is_storage(op) == (not asked)


def test_places_and_rounding() -> None:
    x = RNG.integers(0, 4, (3, 5))
    f32 = np.dtype(np.float32)

    def body(b: Any, p: Any) -> Any:
        """x + 10 * row, by way of an index."""
        row = b.op(arith.MuliOp, scalars.loop_index(b, 0), scalars.index_constant(b, 10))
        position = b.op(arith.AddiOp, scalars.as_index(b, p), row)
        return b.op(arith.IndexCastOp, position, scalars.mlir_element(x.dtype))

    np.testing.assert_array_equal(_of(body, x.dtype, x), x + 10 * np.arange(3)[:, None])
    halves = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49, 0.51, 3.0], np.float32)
    np.testing.assert_array_equal(_of(lambda b, p: scalars.round_half_even(b, p), f32, halves), np.rint(halves))
