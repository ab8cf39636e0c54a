"""Arithmetic of kernel IR against NumPy: on vectors as it is evaluated, on Python numbers as it folds."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fuseline.targets.cpu.isa import detect
from fuseline.targets.cpu.kernel_ir.arithmetic import type_of_number
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.lanes import Lanes
from fuseline.targets.cpu.kernel_ir.types import I1, I64, Type

from .vectors import on_lanes

LANES = 8


def _floats(dtype: Any = np.float32) -> Any:
    return np.random.default_rng().uniform(-9, 9, LANES).astype(dtype)


def _integers(dtype: Any) -> Any:
    info = np.iinfo(dtype)
    found = np.random.default_rng().integers(info.min, info.max, LANES, dtype=dtype, endpoint=True)
    found[0], found[1] = info.min, info.max
    return found


def _unsigned(array: Any) -> Any:
    return array.view(f"u{array.dtype}")


FLOATS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "min": np.minimum, "max": np.maximum,
    "minimum": np.minimum, "maximum": np.maximum,
}  # fmt: skip
INTEGERS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
    "umin": lambda a, b: np.minimum(_unsigned(a), _unsigned(b)),
    "umax": lambda a, b: np.maximum(_unsigned(a), _unsigned(b)),
    "bitand": np.bitwise_and, "bitor": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative, "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "rint": np.rint, "trunc": np.trunc,
    "sqrt": lambda a: np.sqrt(np.abs(a)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str, dtype: Any) -> None:
    a, b = _floats(dtype), _floats(dtype)
    np.testing.assert_array_equal(on_lanes(lambda k, x, y: getattr(k, name)(x, y), a, b), FLOATS[name](a, b))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_wrap(name: str, dtype: Any) -> None:
    a, b = _integers(dtype), _integers(dtype)
    with np.errstate(over="ignore"):
        expected = INTEGERS[name](a, b).astype(dtype)
    np.testing.assert_array_equal(on_lanes(lambda k, x, y: getattr(k, name)(x, y), a, b), expected)


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_of_floats(name: str) -> None:
    a = _floats()
    found = on_lanes(lambda k, x: getattr(k, name)(k.abs(x) if name == "sqrt" else x), a)
    np.testing.assert_array_equal(found, UNARY[name](a))


def test_signs_and_bits_of_integers() -> None:
    a = _integers(np.int32)
    np.testing.assert_array_equal(on_lanes(lambda k, x: k.neg(x), a), -a)
    np.testing.assert_array_equal(on_lanes(lambda k, x: k.abs(x), a), np.abs(a))
    a[2] = 0
    bits = [f"{number & 0xFFFFFFFF:032b}" for number in a.tolist()]
    for name, expected in (
        ("leading_zeros", [len(text) - len(text.lstrip("0")) for text in bits]),
        ("trailing_zeros", [len(text) - len(text.rstrip("0")) for text in bits]),
        ("count_ones", [text.count("1") for text in bits]),
    ):
        assert on_lanes(lambda k, x, name=name: getattr(k, name)(x), a).tolist() == expected


def test_divisions() -> None:
    a, b = np.abs(_integers(np.int32) // 2), np.random.default_rng().integers(1, 99, LANES).astype(np.int32)
    np.testing.assert_array_equal(on_lanes(lambda k, x, y: k.div(x, y), a, b), a // b)
    np.testing.assert_array_equal(on_lanes(lambda k, x, y: k.rem(x, y), a, b), a % b)
    signed = np.where(np.arange(LANES) % 2, a, -a).astype(np.int32)
    np.testing.assert_array_equal(on_lanes(lambda k, x, y: k.sdiv(x, y), signed, b), np.trunc(signed / b))
    np.testing.assert_array_equal(on_lanes(lambda k, x, y: k.srem(x, y), signed, b), np.fmod(signed, b))


@pytest.mark.parametrize("places", [0, 1, 13, 31])
def test_shifts(places: int) -> None:
    a = _integers(np.int32)
    expected = {"shl": a << places, "ashr": a >> places, "lshr": (_unsigned(a) >> places).view(np.int32)}
    for name, wanted in expected.items():
        np.testing.assert_array_equal(on_lanes(lambda k, x, name=name: getattr(k, name)(x, places), a), wanted)


def test_nan_is_handed_on_where_that_is_asked_for() -> None:
    a, b = np.array([np.nan, 1, np.nan, 3], np.float32), np.array([2, np.nan, np.nan, 4], np.float32)
    for name in ("minimum", "maximum"):
        np.testing.assert_array_equal(
            on_lanes(lambda k, x, y, name=name: getattr(k, name)(x, y), a, b), getattr(np, name)(a, b)
        )
        found = on_lanes(lambda k, x, name=name: getattr(k, name)(1.5, x), b)
        np.testing.assert_array_equal(found, getattr(np, name)(np.float32(1.5), b))
    for name, other in (("min", 2), ("max", 2)):  # the second where either is no number
        assert on_lanes(lambda k, x, y, name=name: getattr(k, name)(x, y), a, b)[0] == other


def test_one_rounding() -> None:
    a = np.full(LANES, 1 + 2.0**-12, np.float32)
    found = on_lanes(lambda k, x: k.fma(x, x, -1.0), a)
    np.testing.assert_array_equal(found, np.float32((1 + 2.0**-12) ** 2 - 1))


PREDICATES = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}


@pytest.mark.parametrize("name", PREDICATES)
def test_comparisons_are_signed_and_ordered(name: str) -> None:
    numpy = getattr(np, PREDICATES[name])
    a, b = _integers(np.int8), _integers(np.int8)
    b[::2] = a[::2]
    np.testing.assert_array_equal(on_lanes(lambda k, x, y: k.compare(name, x, y), a, b, result="i1"), numpy(a, b))
    x, y = np.array([1, np.nan, 2, np.nan], np.float32), np.array([1, 1, np.nan, np.nan], np.float32)
    np.testing.assert_array_equal(on_lanes(lambda k, x, y: k.compare(name, x, y), x, y, result="i1"), numpy(x, y))
    for one, other in ((2, 3), (3, 3), (-1, 1)):
        assert Lanes().compare(name, one, other).attr == int(numpy(one, other))


@pytest.mark.parametrize("name", ["ult", "ule", "ugt", "uge"])
def test_unsigned_comparisons_fold_as_they_run(name: str) -> None:
    function = {"ult": operator.lt, "ule": operator.le, "ugt": operator.gt, "uge": operator.ge}[name]
    for a, b in ((-1, 1), (1, -1), (3, 3), (0, 5)):
        expected = function(a % 2**64, b % 2**64)
        assert Lanes().compare(name, a, b).attr == int(expected)
        found = on_lanes(lambda k, x, y: k.compare(name, x, y), np.array([a, a]), np.array([b, b]), result="i1")
        assert found.tolist() == [expected] * 2


def test_selection() -> None:
    a, b, k = _floats(), _floats(), Lanes()
    np.testing.assert_array_equal(
        on_lanes(lambda k, x, y: k.select(k.compare("lt", x, y), x, y), a, b), np.minimum(a, b)
    )
    scalar = on_lanes(lambda k, x, y: k.select(k.compare("gt", k.extract(x, 0), 0.0), x, y), a, b)
    np.testing.assert_array_equal(scalar, a if a[0] > 0 else b)
    assert (k.select(k.const(1, "i1"), 3, 4), k.select(k.const(0, "i1"), 3, 4), k.select(k.const(0, "i1"), 5, 5)) == (
        3,
        4,
        5,
    )


# lanes ----------------------------------------------------------------------------------------------------------------


def test_lanes_are_moved() -> None:
    a, b = _floats(), _floats()
    for function, expected in (
        (lambda k, x, y: k.shuffle(x, y, [0, 8, 1, 9, 2, 10, 3, 11]), np.stack([a[:4], b[:4]], 1).ravel()),
        (lambda k, x, y: k.shuffle(x, None, range(7, -1, -1)), a[::-1]),
        (lambda k, x, y: k.concat(k.lanes(x, 4, 4), k.lanes(y, 0, 4)), np.concatenate([a[4:], b[:4]])),
        (lambda k, x, y: k.splat(k.extract(x, 5), 8), np.repeat(a[5], 8)),
        (lambda k, x, y: k.insert(x, k.extract(y, 2), 3), np.where(np.arange(8) == 3, b[2], a)),
        (
            lambda k, x, y: k.concat(
                k.concat(k.concat(k.extract(x, 0), k.extract(y, 1)), k.lanes(y, 2, 2)), k.lanes(x, 4, 4)
            ),
            np.where(np.isin(np.arange(8), [1, 2, 3]), b, a),
        ),
    ):
        np.testing.assert_array_equal(on_lanes(function, a, b), expected)


@pytest.mark.parametrize(("name", "numpy"), [("add", np.add), ("max", np.maximum), ("mul", np.multiply)])
def test_lanes_are_combined_in_halves(name: str, numpy: Any) -> None:
    a, total = np.random.default_rng().integers(-3, 4, LANES).astype(np.int32), None
    total = on_lanes(lambda k, x: k.splat(k.reduce(name, x), LANES), a)
    np.testing.assert_array_equal(total, np.repeat(numpy.reduce(a), LANES))


@pytest.mark.parametrize("active", [-1, 0, 3, 8, 99])
def test_masks(active: int) -> None:
    expected = np.arange(LANES) < active
    zeros = np.zeros(LANES, np.float32)
    assert on_lanes(lambda k, x: k.mask(active, LANES), zeros, result="i1").tolist() == expected.tolist()
    k = Lanes()
    assert k.mask(active, 1) is k.const(int(active > 0), "i1")


def test_counting_lanes() -> None:
    assert on_lanes(lambda k, x: k.iota(LANES), np.zeros(LANES, np.int64)).tolist() == list(range(LANES))
    k = Lanes()
    assert k.iota(1) is k.const(0, "i64") and k.iota(4, "i32").type == Type("i32", 4)


# folding --------------------------------------------------------------------------------------------------------------


def test_numbers_become_values_of_the_others_type() -> None:
    k = Lanes()
    v = k.pure("splat", Type("f32", 8), (k.const(2.0, "f32"),))
    assert k.mul(v, 3).args[1] is k.const(3.0, "f32", 8) and k.mul(3, v).type == Type("f32", 8)
    assert k.as_value(2, Type("f64", 4)) is k.const(2.0, "f64", 4)
    scalar = k.pure("load", Type("f32"), ())
    assert k.as_value(scalar, Type("f32", 8)).op == "splat" and k.as_value(scalar) is scalar
    assert k.const([1, 2], "f32", 2).attr == (1.0, 2.0) and k.const(0.0, "f32") is not k.const(-0.0, "f32")
    with pytest.raises(TypeError, match="operands differ in type: 8xf32 and 8xf64"):
        k.add(v, k.const(1.0, "f64", 8))


@pytest.mark.parametrize(("x", "type_"), [(3, I64), (2.5, Type("f32")), (True, I64)])
def test_the_type_of_a_number(x: Any, type_: Type) -> None:
    assert type_of_number(x) == type_
    assert type_of_number(Lanes().const(1, "i1")) == I1


def test_index_arithmetic_keeps_constants_outside() -> None:
    k = Lanes()
    n, m = (k.pure("size", I64, (), i) for i in range(2))
    assert k.add(k.add(n, 3), k.add(m, 4)) is k.add(k.add(n, m), 7)
    assert k.sub(k.add(n, 9), k.add(n, 4)) == 5 and k.sub(k.add(n, 9), 9) is n
    assert k.mul(k.mul(n, 3), 5) is k.mul(n, 15) and k.mul(k.add(n, 2), 5) is k.add(k.mul(n, 5), 10)
    assert (k.mul(n, 0), k.mul(0, n), k.mul(1, n)) == (0, 0, n)
    assert (k.div(n, 1), k.rem(n, 1), k.div(9, 2), k.rem(9, 2), k.ceil_div(9, 2)) == (n, 0, 4, 1, 5)
    assert k.min(n, n) is n and k.max(n, n) is n and k.min(2, 3) == 2 and k.max(2, 3) == 3
    assert k.ceil_div(n, 4) is k.div(k.add(n, 3), 4)


def test_lanes_of_what_is_known_are_known() -> None:
    k = Lanes()
    one = k.const(1.5, "f32")
    assert k.splat(one, 4) is k.const(1.5, "f32", 4) and k.splat(7, 2) is k.const(7, "i64", 2)
    scalar = k.pure("load", Type("f32"), ())
    wide = k.splat(scalar, 4)
    assert k.extract(wide, 2) is scalar and k.splat(wide, 4) is wide and k.extract(scalar, 0) is scalar
    assert k.lanes(wide, 0, 4) is wide and k.lanes(wide, 1, 1) is scalar
    assert k.bitcast(wide, "f32") is wide and k.bitcast(wide, "i64").type == Type("i64", 2)
    assert k.bitcast(wide, "i16").type == Type("i16", 8)


def test_a_reciprocal_is_made_outside_of_loops() -> None:
    k = KernelBuilder("k", detect())
    x = k.load(k.binding(0, "f32", 1), 0)
    inside: list[Any] = []
    k.loop(0, k.size(0), 1, lambda i: inside.append(k.reciprocal(x)) or ())
    assert inside[0].depth == 0 and inside[0].args[0].attr == 1.0


@pytest.mark.parametrize("name", ["add", "mul", "min", "maximum"])
def test_machine_code_gives_the_same(name: str) -> None:
    a, b = _floats(), _floats()
    function = lambda k, x, y: k.combine(name, x, y)  # noqa: E731
    np.testing.assert_array_equal(on_lanes(function, a, b, native=True, isa=detect()), on_lanes(function, a, b))
