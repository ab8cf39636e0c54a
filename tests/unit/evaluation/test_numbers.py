"""Scalar ops: MLIR's semantics per dtype, on scalars and arrays alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fuseline.evaluation import evaluate_module
from fuseline.evaluation.numbers import as_type, signed, unsigned
from fuseline.evaluation.special import erf
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module

NAN, INF = math.nan, math.inf


def apply(op: str, types: list[str], result: str, args: list[Any], *, double: bool = False) -> Any:
    """`op` on scalars of `types`; `op` may hold a predicate or the like, its operands are appended."""
    names = [f"%a{i}" for i in range(len(types))]
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    text = f"func.func @main({arguments}) -> {result} {{ %r = {op.format(*names)}\n return %r : {result} }}"
    return evaluate_module(parse_module(text, new_context()), args, double=double)[0].item()


def binary(op: str, type_: str, a: Any, b: Any) -> Any:
    dtype: Any = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i1": bool}.get(type_) or np.dtype(
        f"int{type_[1:]}"
    )
    return apply(
        f"{op} {{}}, {{}} : {type_}", [type_, type_], type_, [np.asarray(a).astype(dtype), np.asarray(b).astype(dtype)]
    )


@pytest.mark.parametrize(
    ("op", "type_", "a", "b", "expected"),
    [
        ("arith.addi", "i8", 127, 1, -128),
        ("arith.muli", "i32", 2**30, 4, 0),
        ("arith.subi", "i64", -(2**63), 1, 2**63 - 1),
        ("arith.addi", "i1", 1, 1, False),
        ("arith.muli", "i1", 1, 1, True),
        ("arith.divsi", "i32", -7, 2, -3),
        ("arith.floordivsi", "i32", -7, 2, -4),
        ("arith.ceildivsi", "i32", -7, 2, -3),
        ("arith.ceildivsi", "i32", 7, 2, 4),
        ("arith.remsi", "i32", -7, 2, -1),
        ("arith.divui", "i8", -1, 2, 127),
        ("arith.remui", "i8", -1, 16, 15),
        ("arith.ceildivui", "i8", -1, 2, -128),
        ("arith.maxui", "i8", -1, 1, -1),
        ("arith.maxsi", "i8", -1, 1, 1),
        ("arith.minui", "i8", -1, 1, 1),
        ("arith.maxsi", "i1", 1, 0, False),
        ("arith.maxui", "i1", 1, 0, True),
        ("arith.shrsi", "i8", -8, 1, -4),
        ("arith.shrui", "i8", -8, 1, 124),
        ("arith.shli", "i8", 1, 7, -128),
        ("arith.shli", "i8", 1, 9, 0),
        ("arith.xori", "i8", 5, 1, 4),
        ("arith.maximumf", "f32", NAN, 1.0, NAN),
        ("arith.maxnumf", "f32", NAN, 1.0, 1.0),
        ("arith.minimumf", "f32", 1.0, NAN, NAN),
        ("arith.minnumf", "f32", 1.0, NAN, 1.0),
        ("arith.addf", "f32", 2.0**24, 1.0, 2.0**24),
        ("arith.addf", "f16", 2048.0, 1.0, 2048.0),
        ("arith.divf", "f32", 1.0, 0.0, INF),
        ("math.powf", "f32", 2.0, 0.5, float(np.float32(math.sqrt(2)))),
        ("math.copysign", "f32", 3.0, -0.0, -3.0),
        ("math.ipowi", "i32", 3, 4, 81),
        ("math.ipowi", "i32", -1, -3, -1),
        ("math.ipowi", "i32", 3, -1, 0),
    ],
)
def test_binary(op: str, type_: str, a: float, b: float, expected: float):
    assert binary(op, type_, a, b) == pytest.approx(expected, nan_ok=True, rel=0)


@pytest.mark.parametrize(
    ("op", "source", "target", "value", "expected"),
    [
        ("arith.extsi", "i1", "i8", True, -1),
        ("arith.extui", "i1", "i8", True, 1),
        ("arith.extui", "i8", "i32", np.int8(-1), 255),
        ("arith.extsi", "i8", "i32", np.int8(-1), -1),
        ("arith.trunci", "i32", "i8", np.int32(300), 44),
        ("arith.trunci", "i32", "i1", np.int32(2), False),
        ("arith.sitofp", "i8", "f32", np.int8(-1), -1.0),
        ("arith.uitofp", "i8", "f32", np.int8(-1), 255.0),
        ("arith.sitofp", "i1", "f32", True, -1.0),
        ("arith.uitofp", "i1", "f32", True, 1.0),
        ("arith.fptosi", "f32", "i8", np.float32(-1.9), -1),
        ("arith.fptoui", "f32", "i8", np.float32(200.7), -56),
        ("arith.truncf", "f64", "f32", np.float64(0.1), float(np.float32(0.1))),
        ("arith.extf", "f16", "f32", np.float16(0.1), float(np.float16(0.1))),
        ("arith.bitcast", "f32", "i32", np.float32(1.0), 0x3F800000),
        ("arith.index_cast", "i32", "index", np.int32(-3), -3),
    ],
)
def test_casts(op: str, source: str, target: str, value: Any, expected: float):
    assert apply(f"{op} {{}} : {source} to {target}", [source], target, [np.asarray(value)]) == expected


@pytest.mark.parametrize(
    ("op", "value", "expected"),
    [
        ("math.roundeven", 2.5, 2.0),
        ("math.roundeven", 3.5, 4.0),
        ("math.round", 2.5, 3.0),
        ("math.round", -2.5, -3.0),
        ("math.round", 0.49999997, 0.0),
        ("math.rsqrt", 4.0, 0.5),
        ("math.trunc", -1.7, -1.0),
        ("math.floor", -1.2, -2.0),
        ("math.exp2", 3.0, 8.0),
        ("arith.negf", 0.0, -0.0),
    ],
)
def test_unary(op: str, value: float, expected: float):
    got = apply(f"{op} {{}} : f32", ["f32"], "f32", [np.float32(value)])
    assert got == expected and math.copysign(1, got) == math.copysign(1, expected)


@pytest.mark.parametrize("value", [27.0, -8.0, 0.3])
def test_cube_roots(value: float):
    """To one unit in the last place: NumPy rounds them as the machine's vector library does."""
    assert apply("math.cbrt {} : f32", ["f32"], "f32", [np.float32(value)]) == pytest.approx(
        float(np.cbrt(np.float64(value))), rel=2**-23
    )


@pytest.mark.parametrize(
    ("op", "value", "expected"),
    [("ctlz", 1, 31), ("ctlz", -1, 0), ("ctlz", 0, 32), ("cttz", 8, 3), ("cttz", 0, 32), ("ctpop", -1, 32)],
)
def test_bit_counts(op: str, value: int, expected: int):
    assert apply(f"math.{op} {{}} : i32", ["i32"], "i32", [np.int32(value)]) == expected


@pytest.mark.parametrize(
    ("predicate", "a", "b", "expected"),
    [
        ("slt", -1, 1, True),
        ("ult", -1, 1, False),
        ("eq", 3, 3, True),
        ("uge", -1, 1, True),
        ("sge", -1, 1, False),
        ("ne", 1, 2, True),
    ],
)
def test_integer_comparison(predicate: str, a: int, b: int, expected: bool):
    assert apply(f"arith.cmpi {predicate}, {{}}, {{}} : i8", ["i8", "i8"], "i1", [np.int8(a), np.int8(b)]) is expected


_ORDERED = {
    "oeq": False,
    "ogt": False,
    "oge": False,
    "olt": False,
    "ole": False,
    "one": False,
    "ord": False,
    "false": False,
}
_UNORDERED = {"ueq": True, "ugt": True, "uge": True, "ult": True, "ule": True, "une": True, "uno": True, "true": True}


@pytest.mark.parametrize(("predicate", "expected"), [*_ORDERED.items(), *_UNORDERED.items()])
def test_comparison_with_nan(predicate: str, expected: bool):
    assert (
        apply(f"arith.cmpf {predicate}, {{}}, {{}} : f32", ["f32", "f32"], "i1", [np.float32(NAN), np.float32(1)])
        is expected
    )


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("oeq", False),
        ("ogt", False),
        ("olt", True),
        ("one", True),
        ("ult", True),
        ("uge", False),
        ("ord", True),
        ("uno", False),
    ],
)
def test_comparison_of_numbers(predicate: str, expected: bool):
    assert (
        apply(f"arith.cmpf {predicate}, {{}}, {{}} : f32", ["f32", "f32"], "i1", [np.float32(1), np.float32(2)])
        is expected
    )


def test_extended_results():
    text = """func.func @main(%a: i8, %b: i8) -> (i8, i1, i8, i8, i8, i8) {
      %s, %c = arith.addui_extended %a, %b : i8, i1
      %l, %h = arith.mulsi_extended %a, %b : i8
      %m, %n = arith.mului_extended %a, %b : i8
      return %s, %c, %l, %h, %m, %n : i8, i1, i8, i8, i8, i8 }"""
    results = [int(x) for x in evaluate_module(parse_module(text, new_context()), [np.int8(-1), np.int8(2)])]
    assert results == [1, 1, -2, -1, -2, 1]


def test_double_computes_floats_in_float64_and_integers_as_before():
    exact = apply("arith.addf {}, {} : f32", ["f32", "f32"], "f32", [np.float64(2.0**24), np.float64(1.0)], double=True)
    assert exact == 2.0**24 + 1
    assert apply("arith.addi {}, {} : i8", ["i8", "i8"], "i8", [np.int8(127), np.int8(1)], double=True) == -128
    assert apply("arith.bitcast {} : f32 to i32", ["f32"], "i32", [np.float64(1.0)], double=True) == 0x3F800000


def test_erf_is_accurate_to_an_ulp():
    rng = np.random.default_rng(7)
    x = np.concatenate([np.linspace(-7, 7, 20001), rng.standard_normal(2000) * 1e-5, rng.standard_normal(2000) * 3])
    expected = np.array([math.erf(v) for v in x])
    assert np.all(np.abs(erf(x) - expected) <= np.spacing(np.abs(expected)) + 5e-324)
    assert np.isnan(erf(np.array([NAN])))[0]
    assert erf(np.array([INF, -INF, -0.0], np.float32)).tolist() == [1.0, -1.0, -0.0]
    assert [erf(np.zeros((2, 3), dtype)).dtype for dtype in ("f2", "f4", "f8")] == ["f2", "f4", "f8"]


def test_integers_are_seen_with_and_without_their_sign():
    flags, bytes_ = np.array([True, False]), np.array([-1, 127], np.int8)
    assert signed(flags).tolist() == [-1, 0] and signed(bytes_) is bytes_
    assert unsigned(flags).tolist() == [1, 0] and unsigned(bytes_).tolist() == [255, 127]
    assert unsigned(np.array([-1], np.int16)).dtype == np.uint16


def test_results_are_stored_in_the_type_they_have():
    wide = np.array([2, 3, 257], np.int32)
    assert as_type(wide, wide.dtype) is wide
    assert as_type(wide, np.dtype(bool)).tolist() == [False, True, True]
    assert as_type(wide, np.dtype(np.int8)).tolist() == [2, 3, 1]
    assert as_type(np.array([0.5, 0.0]), np.dtype(bool)).tolist() == [True, False]


@pytest.mark.parametrize("kind", ["shli", "shrsi", "shrui"])
@pytest.mark.parametrize("bits", [8, 32, 64])
def test_a_shift_by_the_width_or_more_is_zero(kind: str, bits: int) -> None:
    """MLIR leaves it open; every executor answers 0."""
    assert binary(f"arith.{kind}", f"i{bits}", -3, bits - 1) != 0
    for amount in (bits, bits + bits // 16 + 1, -1):
        assert binary(f"arith.{kind}", f"i{bits}", -3, amount) == 0
