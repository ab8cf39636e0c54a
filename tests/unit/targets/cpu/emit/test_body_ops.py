"""Scalar ops as kernel IR, each against what it means: NumPy on all lanes, the ends of integers and NaN included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, math, tensor
from xdsl.dialects.builtin import IndexType, TensorType, bf16, f16, f32, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute, Block, Operation

from fuseline.errors import FuselineError
from fuseline.ir.scalar_ops import RemFOp
from fuseline.targets.cpu.emit.body_ops import emit_scalar_op
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Type
from tests.unit.targets.cpu.kernel_ir.vectors import on_lanes

Array = Any


def _op(kind: Any, *types: Attribute, **more: Any) -> Operation:
    block = Block(arg_types=types)
    return kind(*block.args, **more)


def _run(kind: Any, types: list[Attribute], *arrays: Array, result: str | None = None) -> Array:
    op = _op(kind, *types)
    return on_lanes(lambda k, *values: emit_scalar_op(k, op, values), *arrays, result=result)


def _integers(dtype: Any) -> tuple[Array, Array]:
    """All pairs of the ends, small numbers, and a few others."""
    info, rng = np.iinfo(dtype), np.random.default_rng()
    odd = np.array([info.min, info.min + 1, -7, -1, 0, 1, 2, 7, info.max], dtype)
    more = rng.integers(info.min, info.max, 19, dtype=dtype)
    return np.concatenate([np.repeat(odd, 9), more]), np.concatenate([np.tile(odd, 9), more[::-1]])


def _quotient(a: Array, b: Array, kind: Callable[[int, int], int]) -> Array:
    """What never traps: by 0, and the least number by -1, as by 1."""
    info = np.iinfo(a.dtype)
    by = [1 if y == 0 or (x == info.min and y == -1) else y for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    return np.array([kind(x, y) for x, y in zip(a.tolist(), by, strict=True)]).astype(a.dtype)


def _unsigned(a: Array, b: Array, kind: Callable[[int, int], int]) -> Array:
    wide = a.view(f"u{a.dtype}").tolist(), b.view(f"u{b.dtype}").tolist()
    found = [kind(x, y or 1) for x, y in zip(*wide, strict=True)]
    return np.array(found, np.uint64).astype(a.dtype)


def _shifted(a: Array, b: Array, kind: Callable[[int, int], int], *, signed: bool = False) -> Array:
    """Beyond the width nothing is left."""
    bits = 8 * a.dtype.itemsize
    left, places = (a if signed else a.view(f"u{a.dtype}")).tolist(), b.view(f"u{b.dtype}").tolist()
    found = [kind(x, n) % 2**bits if n < bits else 0 for x, n in zip(left, places, strict=True)]
    return np.array(found, np.uint64).astype(a.dtype)


INTEGERS: list[tuple[Any, Callable[[Array, Array], Array]]] = [
    (
        arith.DivSIOp,
        lambda a, b: _quotient(a, b, lambda x, y: int(abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)),
    ),
    (arith.RemSIOp, lambda a, b: _quotient(a, b, lambda x, y: (abs(x) % abs(y)) * (-1 if x < 0 else 1))),
    (arith.FloorDivSIOp, lambda a, b: _quotient(a, b, lambda x, y: x // y)),
    (arith.CeilDivSIOp, lambda a, b: _quotient(a, b, lambda x, y: -(-x // y))),
    (arith.DivUIOp, lambda a, b: _unsigned(a, b, lambda x, y: x // y)),
    (arith.RemUIOp, lambda a, b: _unsigned(a, b, lambda x, y: x % y)),
    (arith.CeilDivUIOp, lambda a, b: _unsigned(a, b, lambda x, y: -(-x // y))),
    (arith.ShLIOp, lambda a, b: _shifted(a, b, lambda x, n: x << n)),
    (arith.ShRUIOp, lambda a, b: _shifted(a, b, lambda x, n: x >> n)),
    (arith.ShRSIOp, lambda a, b: _shifted(a, b, lambda x, n: x >> n, signed=True)),
    (arith.AddiOp, lambda a, b: a + b),
    (arith.SubiOp, lambda a, b: a - b),
    (arith.MuliOp, lambda a, b: a * b),
    (arith.AndIOp, np.bitwise_and),
    (arith.OrIOp, np.bitwise_or),
    (arith.XOrIOp, np.bitwise_xor),
    (arith.MaxSIOp, np.maximum),
    (arith.MinSIOp, np.minimum),
    (arith.MaxUIOp, lambda a, b: np.maximum(a.view(f"u{a.dtype}"), b.view(f"u{b.dtype}"))),
    (arith.MinUIOp, lambda a, b: np.minimum(a.view(f"u{a.dtype}"), b.view(f"u{b.dtype}"))),
]


@pytest.mark.parametrize(("dtype", "type_"), [(np.int8, i8), (np.int32, i32), (np.int64, i64)])
@pytest.mark.parametrize(("kind", "numpy"), INTEGERS, ids=[kind.name for kind, _ in INTEGERS])
def test_integers(kind: Any, numpy: Callable[[Array, Array], Array], dtype: Any, type_: Attribute) -> None:
    a, b = _integers(dtype)
    with np.errstate(over="ignore"):
        expected = numpy(a, b).astype(dtype)
    np.testing.assert_array_equal(_run(kind, [type_, type_], a, b), expected)


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        (arith.AddiOp, np.logical_xor),
        (arith.SubiOp, np.logical_xor),
        (arith.MuliOp, np.logical_and),
        (arith.AndIOp, np.logical_and),
        (arith.OrIOp, np.logical_or),
        (arith.XOrIOp, np.logical_xor),
        (arith.MaxSIOp, np.logical_and),  # true is -1
        (arith.MinSIOp, np.logical_or),
        (arith.MaxUIOp, np.logical_or),
        (arith.MinUIOp, np.logical_and),
    ],
)
def test_bits_are_integers_of_one(kind: Any, function: Callable[[Array, Array], Array]) -> None:
    a, b = np.array([0, 0, 1, 1], np.bool_), np.array([0, 1, 0, 1], np.bool_)
    np.testing.assert_array_equal(_run(kind, [i1, i1], a, b), function(a, b))


FLOATS = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e-30, 7.25], np.float32)


@pytest.mark.parametrize("predicate", range(16))
def test_comparisons_of_floats(predicate: int) -> None:
    a, b = np.repeat(FLOATS, 9), np.tile(FLOATS, 9)
    unordered = np.isnan(a) | np.isnan(b)
    numpy = {
        "eq": np.equal,
        "gt": np.greater,
        "ge": np.greater_equal,
        "lt": np.less,
        "le": np.less_equal,
        "ne": np.not_equal,
    }
    name = list(arith.CMPF_COMPARISON_OPERATIONS)[predicate]
    if name in ("false", "true"):
        expected = np.full(81, name == "true")
    elif name in ("ord", "uno"):
        expected = unordered == (name == "uno")
    else:
        expected = np.where(unordered, name[0] == "u", numpy[name[1:]](a, b))
    op = _op(lambda x, y: arith.CmpfOp(x, y, predicate), f32, f32)
    np.testing.assert_array_equal(on_lanes(lambda k, x, y: emit_scalar_op(k, op, [x, y]), a, b, result="i1"), expected)


@pytest.mark.parametrize("predicate", range(10))
def test_comparisons_of_integers(predicate: int) -> None:
    a, b = _integers(np.int8)
    name = list(arith.CMPI_COMPARISON_OPERATIONS)[predicate]
    left, right = (a.view(np.uint8), b.view(np.uint8)) if name[0] == "u" else (a, b)
    numpy = {
        "eq": np.equal,
        "ne": np.not_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
        "lt": np.less,
        "le": np.less_equal,
    }
    op = _op(lambda x, y: arith.CmpiOp(x, y, predicate), i8, i8)
    found = on_lanes(lambda k, x, y: emit_scalar_op(k, op, [x, y]), a, b, result="i1")
    np.testing.assert_array_equal(found, numpy[name[-2:]](left, right))


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        (arith.MaximumfOp, np.maximum),
        (arith.MinimumfOp, np.minimum),
        (arith.MaxnumfOp, np.fmax),
        (arith.MinnumfOp, np.fmin),
        (arith.AddfOp, np.add),
        (arith.SubfOp, np.subtract),
        (arith.MulfOp, np.multiply),
        (arith.DivfOp, np.divide),
        (math.CopySignOp, np.copysign),
        (RemFOp, np.fmod),
    ],
)
def test_floats_with_what_is_no_number(kind: Any, function: Callable[[Array, Array], Array]) -> None:
    a, b = np.repeat(FLOATS, 9), np.tile(FLOATS, 9)
    with np.errstate(all="ignore"):
        expected = function(a, b)
    np.testing.assert_array_equal(_run(kind, [f32, f32], a, b), expected)


@pytest.mark.parametrize(
    ("kind", "source", "target", "function"),
    [
        (arith.ExtSIOp, i1, i32, lambda a: -a.astype(np.int32)),
        (arith.ExtUIOp, i1, i32, lambda a: a.astype(np.int32)),
        (arith.SIToFPOp, i1, f32, lambda a: -a.astype(np.float32)),
        (arith.UIToFPOp, i1, f32, lambda a: a.astype(np.float32)),
        (arith.ExtSIOp, i8, i32, lambda a: a.astype(np.int32)),
        (arith.ExtUIOp, i8, i32, lambda a: a.view(np.uint8).astype(np.int32)),
        (arith.TruncIOp, i16, i8, lambda a: a.astype(np.int8)),
        (arith.TruncIOp, i16, i1, lambda a: a % 2 != 0),
        (arith.UIToFPOp, i8, f32, lambda a: a.view(np.uint8).astype(np.float32)),
        (arith.SIToFPOp, i16, f64, lambda a: a.astype(np.float64)),
        (arith.IndexCastOp, i8, IndexType(), lambda a: a.astype(np.int64)),
        (arith.IndexCastOp, i1, IndexType(), lambda a: -a.astype(np.int64)),
        (arith.IndexCastOp, i16, i1, lambda a: a % 2 != 0),
        (arith.BitcastOp, i32, f32, lambda a: a.view(np.float32)),
    ],
)
def test_conversions(kind: Any, source: Attribute, target: Attribute, function: Callable[[Array], Array]) -> None:
    kinds: dict[Attribute, Any] = {i1: np.bool_, i8: np.int8, i16: np.int16, i32: np.int32}
    dtype = kinds[source]
    a = np.random.default_rng().integers(-99, 99, 16).astype(dtype)
    op = _op(lambda x: kind(x, target), source)
    name = "i64" if isinstance(target, IndexType) else str(target)
    found = on_lanes(lambda k, x: emit_scalar_op(k, op, [x]), a, result=name)
    np.testing.assert_array_equal(found, function(a))


@pytest.mark.parametrize("type_", [f16, bf16])
def test_halves_are_rounded_after_every_op(type_: Attribute) -> None:
    k, name = KernelBuilder("k", machine("avx2")), str(type_)
    a = k.load(k.binding(0, name, 8), 0, 8)
    assert emit_scalar_op(k, _op(arith.AddfOp, type_, type_), [a, a]).type == Type(name, 8)
    compared = emit_scalar_op(k, _op(lambda x, y: arith.CmpfOp(x, y, "olt"), type_, type_), [a, a])
    assert compared.type == Type("i1", 8) and compared.args[0].type == Type("f32", 8)
    found = emit_scalar_op(k, _op(arith.MulfOp, type_, type_), [a, k.const(1.5, name)])
    assert found.type == Type(name, 8)


def test_a_divisor_that_is_known_needs_no_check() -> None:
    k = KernelBuilder("k", machine("avx2"))
    a = k.load(k.binding(0, "i32", 8), 0, 8)
    for number, checked in ((3, False), (0, True), (-1, True)):
        found = emit_scalar_op(k, _op(arith.DivSIOp, i32, i32), [a, k.const(number, "i32", 8)])
        assert (found.args[1].op == "select") == checked


def test_an_op_that_no_body_holds() -> None:
    op = _op(lambda x: tensor.CastOp(x, TensorType(f32, [4])), TensorType(f32, [4]))
    with pytest.raises(FuselineError, match=r"no code for tensor.cast") as caught:
        emit_scalar_op(KernelBuilder("k", machine("avx2")), op, [])
    assert caught.value.code == "E0901"
