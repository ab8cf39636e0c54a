"""Elementary functions against NumPy in wider precision: error in units of the last place over all magnitudes, and the
unusual arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fuseline.evaluation.special import erf as reference_erf
from fuseline.targets.cpu.emit import vector_math as vm
from fuseline.targets.cpu.isa import detect, machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from tests.kernels import call

HOST = detect()
ISAS = [HOST.name] if HOST.name in ("neon", "baseline") else [HOST.name, "baseline"]
F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)


def run(function: Callable[..., Any], *arrays: Any, isa: Any = HOST) -> Any:
    """`function` on whole arrays, a vector at a time."""
    dtype = "f32" if arrays[0].dtype == F32 else "f64"
    count = arrays[0].size
    k = KernelBuilder("kernel", isa)
    memories = [k.binding(i, dtype, count) for i in range(len(arrays))]
    y = k.binding(len(arrays), dtype, count, writable=True)
    k.loop(0, count, 8, lambda i: k.store(y, i, function(k, *(k.load(m, i, 8) for m in memories))))
    out = np.zeros_like(arrays[0])
    call(k.finish(), isa, [*arrays, out])
    return out


def arguments(dtype: Any, seed: int, low: float, high: float) -> Any:
    """Both signs, exponents spread evenly, and everything unusual; a multiple of 8."""
    rng = np.random.default_rng(seed)
    x = rng.choice([-1.0, 1.0], 16000) * np.exp2(rng.uniform(low, high, 16000))
    info = np.finfo(dtype)
    odd = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        np.inf,
        -np.inf,
        np.nan,
        info.max,
        -info.max,
        info.tiny,
        info.smallest_subnormal,
        -info.tiny / 4,
        0.5,
        -0.5,
        2.0,
        88.72,
    ]
    return np.concatenate([x, odd]).astype(dtype)


def check(found: Any, want: Any, ulps: float) -> None:
    """Within `ulps` of the wider `want`; infinities and NaN exactly where they belong."""
    with np.errstate(over="ignore"):
        rounded = want.astype(found.dtype)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(rounded))
    unbounded = np.isinf(rounded)
    np.testing.assert_array_equal(found[unbounded], rounded[unbounded])
    fine = np.isfinite(rounded)
    with np.errstate(over="ignore"):
        unit = np.spacing(np.maximum(np.abs(rounded[fine]), np.finfo(found.dtype).tiny)).astype(want.dtype)
    assert np.max(np.abs(found[fine] - want[fine]) / unit, initial=0.0) <= ulps


CASES: list[tuple[str, Callable[[Any], Any], float, float, float, float]] = [
    ("exp", np.exp, -30, 7.5, 1.5, 1.5),
    ("log", np.log, -126, 127, 1.5, 1.5),
    ("tanh", np.tanh, -30, 6, 4.5, 4.0),
    ("expm1", np.expm1, -30, 6, 0.51, 4.0),
    ("log1p", np.log1p, -30, 100, 0.51, 3.0),
    ("exp2", np.exp2, -30, 7, 0.51, 1.5),
    ("log2", np.log2, -126, 127, 0.51, 3.0),
    ("log10", np.log10, -126, 127, 0.51, 3.0),
    ("sin", np.sin, -30, 127, 0.51, 2.0),
    ("cos", np.cos, -30, 127, 0.51, 2.0),
    ("tan", np.tan, -30, 127, 0.51, 4.0),
    ("asin", np.arcsin, -30, 0.5, 0.51, 3.0),
    ("acos", np.arccos, -30, 0.5, 0.51, 3.0),
    ("atan", np.arctan, -30, 60, 0.51, 1.5),
    ("sinh", np.sinh, -30, 7, 0.51, 4.0),
    ("cosh", np.cosh, -30, 7, 0.51, 4.0),
    ("asinh", np.arcsinh, -30, 100, 0.51, 3.0),
    ("acosh", np.arccosh, -3, 100, 0.51, 3.0),
    ("atanh", np.arctanh, -30, 0.1, 0.51, 3.0),
    ("cbrt", np.cbrt, -126, 127, 0.51, 1.0),
    ("rsqrt", lambda x: 1 / np.sqrt(x), -126, 127, 1.5, 1.5),
]


@pytest.mark.parametrize(("name", "reference", "low", "high", "ulps", "ulps_f64"), CASES)
@pytest.mark.parametrize("dtype", [F32, F64])
def test_error(
    name: str, reference: Callable[[Any], Any], low: float, high: float, ulps: float, ulps_f64: float, dtype: Any
) -> None:
    x = arguments(dtype, len(name), low, high)
    with np.errstate(all="ignore"):
        want = reference(x.astype(F64 if dtype == F32 else np.longdouble))
    check(run(getattr(vm, name), x), want, ulps if dtype == F32 else ulps_f64)


def test_exp_of_negative() -> None:
    """As close as `exp` wherever the result is a normal number, 0 below them, NaN of NaN."""
    x = -np.abs(arguments(F32, 11, -30, 7.5))
    with np.errstate(all="ignore"):
        want = np.exp(x.astype(F64))
    found = run(vm.exp_of_negative, x)
    normal = ~(want < 2 * np.finfo(np.float32).tiny)
    check(found[normal], want[normal], 1.5)
    assert np.all((found[~normal] >= 0) & (found[~normal] <= 2 * np.finfo(np.float32).tiny))
    assert np.all(found[want < np.finfo(np.float32).smallest_subnormal] == 0)
    assert found[x == 0][0] == 1


@pytest.mark.parametrize("dtype", [F32, F64])
def test_erf(dtype: Any) -> None:
    x = np.concatenate(
        [
            arguments(dtype, 1, -30, 4),
            np.random.default_rng(2).uniform(-4.2, 4.2, 100_000 if dtype == F32 else 1000).astype(dtype),
        ]
    )
    want = reference_erf(x.astype(F64)) if dtype == F32 else np.array([math.erf(v) for v in x])
    check(run(vm.erf, x), want, 5.5 if dtype == F32 else 2.0)


@pytest.mark.parametrize("dtype", [F32, F64])
def test_round_half_away(dtype: Any) -> None:
    x = np.concatenate(
        [arguments(dtype, 2, -3, 30), np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 8388609.0, -1.5], dtype)]
    )
    with np.errstate(all="ignore"):
        want = np.where(np.abs(x - np.trunc(x)) >= 0.5, np.trunc(x) + np.copysign(1, x), np.trunc(x))
    np.testing.assert_array_equal(run(vm.round_half_away, x), want.astype(dtype))


def test_power() -> None:
    rng = np.random.default_rng(5)
    x, y = arguments(F32, 3, -20, 20), rng.uniform(-9, 9, 16016).astype(F32)
    y[::2] = np.rint(y[::2])
    y[-64:] = np.tile(np.array([0, 1, -1, np.inf, -np.inf, np.nan, 2, -3], F32), 8)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(F64), y.astype(F64))
        within = np.isnan(want) | np.isinf(want.astype(F32)) | (np.abs(want) < 3e38)
    found = run(vm.power, x, y)
    check(found[within], want[within], 0.51)


@pytest.mark.parametrize("exponent", [0.5, 1.0, -1.0, 2.0, 3.0])
def test_power_of_a_constant(exponent: float) -> None:
    x = arguments(F32, 4, -20, 20)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(F64), np.full(x.shape, exponent))
    check(run(lambda k, a: vm.power(k, a, k.const(exponent, "f32")), x), want, 1.5)


def test_atan2() -> None:
    x, y = arguments(F32, 6, -20, 20), arguments(F32, 7, -20, 20)[::-1].copy()
    y[-16:] = np.tile(np.array([0.0, -0.0, np.inf, -np.inf], F32), 4)
    with np.errstate(all="ignore"):
        want = np.arctan2(y.astype(F64), x.astype(F64))
    check(run(vm.atan2, y, x), want, 0.51)


@pytest.mark.parametrize("isa", ["baseline"])
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf"])
def test_without_fma(name: str, isa: str) -> None:
    """Only the constants of the error bounds change where products are rounded."""
    if HOST.triple != machine(isa).triple:
        pytest.skip("another architecture")
    x = arguments(F32, 8, -30, 7)
    reference = {"exp": np.exp, "log": np.log, "tanh": np.tanh, "erf": reference_erf}[name]
    with np.errstate(all="ignore"):
        want = reference(x.astype(F64))
    check(run(getattr(vm, name), x, isa=machine(isa)), want, 8.0)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("dtype", "low", "high"), [(F32, -149.0, 127.9), (F64, -1074.0, 1023.9)])
def test_remainders_are_exact_for_every_quotient(dtype: Any, low: float, high: float, isa: str):
    x, y = arguments(dtype, 21, low, high), arguments(dtype, 22, low, high)
    rng = np.random.default_rng(23)
    with np.errstate(over="ignore"):
        near = np.concatenate([x[:4000], (y[:4000] * np.round(rng.uniform(-1e6, 1e6, 4000))).astype(dtype)])
        close = near * (1 + rng.choice([0, 1e-7, -1e-7, 0.3], 8000)).astype(dtype)
    odd = np.repeat(x[-16:], 16), np.tile(y[-16:], 16)
    for a, b in ((x, y), (near, close), (near, np.resize(y[:4000], 8000)), odd):
        with np.errstate(all="ignore"):
            wanted = np.fmod(a, b)
        found = run(vm.fmod, np.ascontiguousarray(a), np.ascontiguousarray(b), isa=machine(isa))
        np.testing.assert_array_equal(found, wanted)
        kept = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[kept]), np.signbit(wanted[kept]))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("function", [vm.erf, vm.tanh])
def test_what_saturates_is_one_exactly_and_never_more(function: Callable[..., Any], isa: str):
    x = np.linspace(2.0, 12.0, 1 << 16).astype(np.float32)
    for sign in (1, -1):
        found = run(function, np.float32(sign) * x, isa=machine(isa))
        assert np.abs(found).max() == 1
        np.testing.assert_array_equal(found[x >= 8], np.float32(sign))
    far = np.array([1e38, -1e38, np.inf, -np.inf, 20, -20, 5000, -5000], np.float32)
    np.testing.assert_array_equal(run(function, far, isa=machine(isa)), np.sign(far))
