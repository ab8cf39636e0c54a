"""Elementary functions of f64 lanes against the C library and NumPy; exact parts exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fuseline.targets.cpu.emit import wide_erf, wide_trigonometry
from fuseline.targets.cpu.emit import wide_math as wm
from fuseline.targets.cpu.emit.argument_reduction import DIGIT_BITS, digits_of_two_over_pi, reduce_huge
from fuseline.targets.cpu.emit.remainder import QUOTIENT_BITS, fmod
from tests.unit.targets.cpu.kernel_ir.vectors import on_lanes

Array = Any
CASES: list[tuple[str, Callable[[Any], Any], float, float]] = [
    ("exp", np.exp, -700, 700),
    ("exp2", np.exp2, -1000, 1000),
    ("expm1", np.expm1, -30, 30),
    ("log", np.log, 1e-300, 1e300),
    ("log1p", np.log1p, -0.999, 1e5),
    ("tanh", np.tanh, -20, 20),
    ("sinh", np.sinh, -700, 700),
    ("cosh", np.cosh, -700, 700),
    ("asinh", np.arcsinh, -1e9, 1e9),
    ("acosh", np.arccosh, 1.0, 1e9),
    ("atanh", np.arctanh, -0.999, 0.999),
    ("sin", np.sin, -1e5, 1e5),
    ("cos", np.cos, -1e5, 1e5),
    ("tan", np.tan, -1e3, 1e3),
    ("atan", np.arctan, -50, 50),
    ("asin", np.arcsin, -1, 1),
    ("acos", np.arccos, -1, 1),
    ("cbrt", np.cbrt, -1e6, 1e6),
    ("erf", np.vectorize(math.erf), -4, 4),
]


def _drawn(low: float, high: float) -> Array:
    """Evenly, and by magnitude where that is another thing."""
    rng = np.random.default_rng()
    even = rng.uniform(low, high, 48)
    small = rng.choice([-1.0, 1.0], 16) * np.exp2(rng.uniform(-20, 0, 16))
    return np.concatenate([even, np.clip(small, low, high)])


def _function(name: str) -> Callable[..., Any]:
    """The function of that name, from the file that has it."""
    return next(vars(module)[name] for module in (wm, wide_trigonometry, wide_erf) if name in vars(module))


@pytest.mark.parametrize(("name", "numpy", "low", "high"), CASES, ids=[case[0] for case in CASES])
def test_a_function_is_right_to_a_few_units(name: str, numpy: Callable[[Any], Any], low: float, high: float) -> None:
    x = _drawn(low, high)
    found, expected = on_lanes(lambda k, v: _function(name)(k, v), x), numpy(x)
    slack = (
        1e-9 if name == "tan" else 4e-15 * max(1.0, float(np.abs(expected).max())) if name in ("sin", "cos") else 0.0
    )
    np.testing.assert_allclose(found, expected, rtol=2e-13, atol=slack)


ENDS: dict[str, list[tuple[float, float]]] = {
    "exp": [(-np.inf, 0), (np.inf, np.inf), (0.0, 1)],
    "expm1": [(-np.inf, -1), (np.inf, np.inf), (0.0, 0)],
    "log": [(0.0, -np.inf), (np.inf, np.inf), (-1.0, np.nan), (1.0, 0)],
    "log1p": [(-1.0, -np.inf), (np.inf, np.inf), (-2.0, np.nan), (0.0, 0)],
    "tanh": [(-np.inf, -1), (np.inf, 1), (0.0, 0)],
    "sinh": [(-np.inf, -np.inf), (np.inf, np.inf), (0.0, 0)],
    "cosh": [(-np.inf, np.inf), (0.0, 1)],
    "acosh": [(0.5, np.nan), (1.0, 0), (np.inf, np.inf)],
    "atanh": [(1.0, np.inf), (-1.0, -np.inf), (1.5, np.nan)],
    "sin": [(np.inf, np.nan), (0.0, 0)],
    "cos": [(-np.inf, np.nan), (0.0, 1)],
    "atan": [(np.inf, np.pi / 2), (-np.inf, -np.pi / 2)],
    "asin": [(1.0, np.pi / 2), (1.5, np.nan)],
    "cbrt": [(np.inf, np.inf), (-8.0, -2), (0.0, 0)],
    "erf": [(np.inf, 1), (-np.inf, -1), (0.0, 0)],
}


@pytest.mark.parametrize("name", ENDS)
def test_ends_and_what_lies_beyond(name: str) -> None:
    x = np.array([argument for argument, _ in ENDS[name]] + [np.nan])
    expected = np.array([value for _, value in ENDS[name]] + [np.nan])
    np.testing.assert_allclose(on_lanes(lambda k, v: _function(name)(k, v), x), expected, rtol=1e-14, atol=1e-300)


def test_the_sign_of_zero_is_kept() -> None:
    for name in ("sin", "tan", "tanh", "sinh", "atan", "asinh", "atanh", "log1p", "cbrt", "erf"):
        found = on_lanes(lambda k, v, name=name: _function(name)(k, v), np.array([0.0, -0.0]))
        assert np.signbit(found).tolist() == [False, True] and not found.any(), name


@pytest.mark.parametrize("coefficients", [[2.0], [1.0, -3.0], [0.5, 0.0, 4.0, -1.0]])
def test_polynomials_begin_with_the_highest_power(coefficients: list[float]) -> None:
    x = _drawn(-2, 2)
    np.testing.assert_allclose(
        on_lanes(lambda k, v: wm.polynomial(k, v, coefficients), x), np.polyval(coefficients, x), atol=1e-12
    )


@pytest.mark.parametrize("exponent", [-1074, -1030, -3, 0, 5, 1000, 1023])
def test_scaling_by_a_power_of_two_is_exact(exponent: int) -> None:
    x = np.random.default_rng().uniform(1, 2, 8)
    found = on_lanes(lambda k, v: wm.scale(k, v, k.const(float(exponent), "f64", 8)), x)
    np.testing.assert_array_equal(found, np.ldexp(x, exponent) if exponent > -1022 else found)
    np.testing.assert_allclose(found, np.ldexp(x, exponent), rtol=1e-15, atol=5e-324)


def test_signs_are_taken_over() -> None:
    size, sign = np.array([1.5, -2.0, 0.0, np.inf]), np.array([-0.0, 3.0, -1.0, -np.inf])
    found = on_lanes(lambda k, a, b: wm.with_sign(k, a, b), size, sign)
    np.testing.assert_array_equal(found, np.copysign(size, sign))
    assert np.signbit(found).tolist() == [True, False, True, True]


def test_the_angle_of_a_point() -> None:
    rng = np.random.default_rng()
    odd = [0.0, -0.0, np.inf, -np.inf, 1.0, -1.0]
    y, x = (np.concatenate([part, rng.uniform(-5, 5, 28)]) for part in (np.repeat(odd, 6), np.tile(odd, 6)))
    np.testing.assert_allclose(
        on_lanes(lambda k, a, b: wide_trigonometry.atan2(k, a, b), y, x), np.arctan2(y, x), rtol=1e-14, atol=1e-300
    )


def test_powers_are_those_of_c() -> None:
    rng = np.random.default_rng()
    odd = [0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, np.inf, -np.inf]
    x = np.concatenate([np.repeat(odd, 10), rng.uniform(0.1, 5, 28)])
    y = np.concatenate([np.tile(odd, 10), rng.uniform(-5, 5, 28)])
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    np.testing.assert_allclose(on_lanes(lambda k, a, b: wm.power(k, a, b), x, y), expected, rtol=1e-13)


# large arguments ------------------------------------------------------------------------------------------------------


def test_the_digits_of_two_over_pi() -> None:
    """Those that FreeBSD's `e_rem_pio2.c` lists."""
    assert [int(digit) for digit in digits_of_two_over_pi()[:8]] == [
        0xA2F983, 0x6E4E44, 0x1529FC, 0x2757D1, 0xF534DD, 0xC0DB62, 0x95993C, 0x439041,
    ]  # fmt: skip
    assert digits_of_two_over_pi(3) == digits_of_two_over_pi()[:3] and len(digits_of_two_over_pi()) == 50
    total = sum(Fraction(int(digit), 2 ** (DIGIT_BITS * (i + 1))) for i, digit in enumerate(digits_of_two_over_pi(5)))
    assert abs(float(total) - 2 / math.pi) < 1e-15


def test_arguments_of_any_size_are_reduced() -> None:
    rng = np.random.default_rng()
    x = np.concatenate(
        [rng.choice([-1.0, 1.0], 60) * np.exp2(rng.uniform(20, 1000, 60)), [1e22, 2.0**1023, 1.7e308, -1e9]]
    )
    r = on_lanes(lambda k, v: reduce_huge(k, v)[0], x)
    n = on_lanes(lambda k, v: reduce_huge(k, v)[1], x)
    assert (np.abs(r) <= np.pi / 4 + 1e-12).all() and (n == np.rint(n)).all()
    quadrant = np.mod(n, 4).astype(int)
    sine = np.choose(quadrant, [np.sin(r), np.cos(r), -np.sin(r), -np.cos(r)])
    np.testing.assert_allclose(sine, [math.sin(value) for value in x], atol=1e-15, rtol=1e-12)
    found = on_lanes(lambda k, v: wide_trigonometry.sin(k, v), x)
    np.testing.assert_allclose(found, [math.sin(value) for value in x], atol=2e-16, rtol=1e-12)


def test_one_lane_that_is_large_spoils_no_other() -> None:
    x = np.array([0.5, 1e300, -3.0, np.nan, 1e7, np.inf, 2.0, -1e15])
    expected = [math.sin(v) if math.isfinite(v) else math.nan for v in x]
    np.testing.assert_allclose(on_lanes(lambda k, v: wide_trigonometry.sin(k, v), x), expected, rtol=1e-12)
    expected = [math.cos(v) if math.isfinite(v) else math.nan for v in x]
    np.testing.assert_allclose(on_lanes(lambda k, v: wide_trigonometry.cos(k, v), x), expected, rtol=1e-12)


# remainders -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spread", [1, QUOTIENT_BITS, QUOTIENT_BITS + 3, 300, 2000])
def test_a_remainder_is_exact(spread: int) -> None:
    rng = np.random.default_rng()
    scale = min(spread, 1000)
    x = rng.choice([-1.0, 1.0], 64) * np.exp2(rng.uniform(-scale, min(spread, 1023), 64))
    y = rng.choice([-1.0, 1.0], 64) * np.exp2(rng.uniform(-scale, scale, 64))
    x[:4], y[:4] = y[:4] * [1, 2, -3, 1000], y[:4]
    found = on_lanes(lambda k, a, b: fmod(k, a, b), x, y)
    with np.errstate(over="ignore"):
        expected = np.fmod(x, y)
    np.testing.assert_array_equal(found, expected)
    assert (np.signbit(found) == np.signbit(x)).all()


def test_remainders_of_what_is_no_number() -> None:
    odd = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 5e-324, 1.7e308]
    x, y = np.repeat(odd, len(odd)), np.tile(odd, len(odd))
    with np.errstate(invalid="ignore"):
        expected = np.fmod(x, y)
    np.testing.assert_array_equal(on_lanes(lambda k, a, b: fmod(k, a, b), x, y), expected)
