"""Conversions between element types: every value of the narrow ones, against NumPy and ml_dtypes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fuseline.targets.cpu.isa import detect, machine
from fuseline.targets.cpu.kernel_ir.conversion import Conversion
from fuseline.targets.cpu.kernel_ir.types import Type

from .vectors import DTYPES, on_lanes

HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.int16)
SOFT = replace(machine("avx2"), half_conversion=False)


def _same(found: Any, expected: Any) -> None:
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), nan)
    np.testing.assert_array_equal(found[~nan], expected[~nan])


def _odd(dtype: Any) -> Any:
    """Numbers of all magnitudes, and what is no number."""
    rng = np.random.default_rng()
    x = rng.choice([-1.0, 1.0], 4000) * np.exp2(rng.uniform(-30, 20, 4000))
    halves = np.arange(-2050, 2051) + 0.5
    return np.concatenate([x, halves, [0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519, 65520, 6e-8, 2.9e-8]]).astype(
        dtype
    )


@pytest.mark.parametrize("isa", [machine("avx2"), SOFT], ids=["instruction", "bits"])
def test_every_half_is_widened(isa: Any) -> None:
    with np.errstate(invalid="ignore"):
        expected = HALVES.view(np.float16).astype(np.float32)
    _same(on_lanes(lambda k, x: k.cast(k.bitcast(x, "f16"), "f32"), HALVES, result="f32", isa=isa), expected)


@pytest.mark.parametrize("isa", [machine("avx2"), SOFT], ids=["instruction", "bits"])
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_floats_are_rounded_to_halves_once(isa: Any, source: Any) -> None:
    x = _odd(source)
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    found = on_lanes(lambda k, x: k.bitcast(k.cast(x, "f16"), "i16"), x, result="i16", isa=isa)
    _same(found.view(np.float16), expected)


def test_every_bfloat_is_widened_and_found_again() -> None:
    expected = HALVES.view(ml_dtypes.bfloat16).astype(np.float32)
    _same(on_lanes(lambda k, x: k.cast(k.bitcast(x, "bf16"), "f32"), HALVES, result="f32"), expected)
    back = on_lanes(lambda k, x: k.bitcast(k.cast(k.cast(k.bitcast(x, "bf16"), "f32"), "bf16"), "i16"), HALVES)
    _same(back.view(ml_dtypes.bfloat16).astype(np.float32), expected)


def test_floats_are_rounded_to_bfloats() -> None:
    x = _odd(np.float32)
    found = on_lanes(lambda k, x: k.bitcast(k.cast(x, "bf16"), "i16"), x, result="i16")
    _same(found.view(ml_dtypes.bfloat16).astype(np.float32), x.astype(ml_dtypes.bfloat16).astype(np.float32))


@pytest.mark.parametrize("target", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_floats_are_truncated(source: Any, target: str) -> None:
    most = 2.0 ** min(8 * np.dtype(DTYPES[target]).itemsize - 1, 40)
    x = np.random.default_rng().uniform(-most + 1, most - 1, 512).astype(source)
    x = x[np.abs(x.astype(np.float64)) < most]
    np.testing.assert_array_equal(
        on_lanes(lambda k, x: k.cast(x, target), x, result=target),
        np.trunc(x.astype(np.float64)).astype(DTYPES[target]),
    )


@pytest.mark.parametrize("target", ["i32", "i64"])
def test_floats_above_half_of_the_range_are_unsigned(target: str) -> None:
    bits = 8 * np.dtype(DTYPES[target]).itemsize
    x = np.array(
        [0.0, 0.75, 1.5, 2.0 ** (bits - 1) - 2.0 ** (bits - 12), 2.0 ** (bits - 1), 2.0 ** (bits - 1) * 1.5, 7e3]
    )
    found = on_lanes(lambda k, x: k.cast(x, target, unsigned=True), x, result=target)
    assert [number % 2**bits for number in found.tolist()] == [int(number) for number in x.tolist()]


@pytest.mark.parametrize("unsigned", [True, False])
@pytest.mark.parametrize("target", ["f32", "f64"])
@pytest.mark.parametrize("source", [np.int8, np.int16, np.int32])
def test_integers_become_floats(source: Any, target: str, unsigned: bool) -> None:
    info = np.iinfo(source)
    x = np.random.default_rng().integers(info.min, info.max, 256, dtype=source, endpoint=True)
    x[:3] = info.min, info.max, -1
    wide = x.view(f"u{x.dtype}") if unsigned else x
    np.testing.assert_array_equal(
        on_lanes(lambda k, x: k.cast(x, target, unsigned=unsigned), x, result=target), wide.astype(DTYPES[target])
    )


@pytest.mark.parametrize("unsigned", [True, False])
@pytest.mark.parametrize(("source", "target"), [("i8", "i64"), ("i16", "i32"), ("i64", "i8"), ("i32", "i16")])
def test_integers_are_widened_or_cut(source: str, target: str, unsigned: bool) -> None:
    info = np.iinfo(DTYPES[source])
    x = np.random.default_rng().integers(info.min, info.max, 64, dtype=DTYPES[source], endpoint=True)
    wide = x.view(f"u{x.dtype}") if unsigned else x
    found = on_lanes(lambda k, x: k.cast(x, target, unsigned=unsigned), x, result=target)
    np.testing.assert_array_equal(found, wide.astype(np.int64).astype(DTYPES[target]))


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64])
def test_a_bool_is_what_differs_from_nothing(dtype: Any) -> None:
    x = np.array([0, 1, 2, -3, 0, 100, -0.0, -1]).astype(dtype)
    assert on_lanes(lambda k, x: k.cast(x, "i1"), x, result="i1").tolist() == (x != 0).tolist()
    back = on_lanes(lambda k, x: k.cast(k.cast(x, "i1"), "i32"), x, result="i32")
    assert back.tolist() == (x != 0).astype(int).tolist()


def test_python_numbers_and_equal_types_are_no_code() -> None:
    k = Conversion()
    assert k.cast(3, "i64") == 3 and k.cast(3, "f32") is k.const(3.0, "f32") and k.cast(3, "i8") is k.const(3, "i8")
    value = k.pure("load", Type("f32", 4), ())
    assert k.cast(value, "f32") is value and not k.cast(value, "f64").op == "load"
    condition = k.pure("compare", Type("i1"), ())
    assert k.cast_mask(condition, Type("i32", 4)).type == Type("i1", 4)
    assert k.cast_mask(condition, Type("i32")) is condition


@pytest.mark.parametrize("target", ["f16", "bf16"])
def test_machine_code_gives_the_same(target: str) -> None:
    x = _odd(np.float32)[:64]
    x = x[np.isfinite(x)][:32]
    function = lambda k, x: k.bitcast(k.cast(x, target), "i16")  # noqa: E731
    found = on_lanes(function, x, result="i16", native=True, isa=detect())
    np.testing.assert_array_equal(found, on_lanes(function, x, result="i16"))
