"""Elementary functions on f32 and f64 vectors and scalars.

The functions that models spend time in (exp, log, erf, tanh) have f32 code of their own; the others widen to f64 (see
`wide_math`), which leaves an error of half a unit in the last place. NaN, infinities, zeros and denormals give what
NumPy gives. Errors in ulp, measured against float64 by the tests over all magnitudes:

    exp 1.5   exp_of_negative 1.5   log 1.5   tanh 4.5   erf 5.5   rsqrt 1.5   all others 0.51
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from fuseline.targets.cpu.emit import remainder, wide_erf, wide_trigonometry
from fuseline.targets.cpu.emit import wide_math as wide
from fuseline.targets.cpu.emit.wide_math import polynomial, with_sign
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import BITS, Value

K = KernelBuilder
INF, NAN = math.inf, math.nan

_EXP = (
    0.5,
    0.1666652,
    0.041668393,
    0.008368781,
    0.0013814467,
)  # e^x = 1 + x + x^2 (..) within 0.06 * 2^-24 on [-ln 2 / 2, ln 2 / 2]
_EXP_MAGIC = 1.5 * 2.0**23 + 254.0
_EXP_OF_NEGATIVE_MAGIC = 1.5 * 2.0**23 + 127.0
_LOG = (  # Cephes logf
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
# Eigen's rational fit on [-4, 4], scaled so that its denominator is 1 at 0, last places chosen for the least error in
# f32
_ERF_P = (
    1.911100611096117e-08,
    -1.942327799042687e-06,
    1.472880394430831e-04,
    3.990613389760256e-03,
    5.1524996757507324e-02,
    2.0712609589099884e-01,
    1.1283791065216064,
)
_ERF_Q = (1.021124655380845e-03, 1.4958146028220654e-02, 1.1797109246253967e-01, 5.168920159339905e-01, 1.0)
_ERF_END = 3.64  # from here on the fit passes 1 here and there
_TANH_P = (  # Eigen's rational fit on [-7.9, 7.9]
    -2.76076847742355e-16,
    2.00018790482477e-13,
    -8.60467152213735e-11,
    5.12229709037114e-08,
    1.48572235717979e-05,
    6.37261928875436e-04,
    4.89352455891786e-03,
)
_TANH_Q = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
_TANH_END = 7.90531110763549805


def _common(in_f32: Callable[[K, Value], Value], in_f64: Callable[[K, Value], Value]) -> Callable[[K, Value], Value]:
    def function(k: K, x: Value) -> Value:
        return in_f64(k, x) if x.type.dtype == "f64" else in_f32(k, x)

    function.__doc__ = in_f64.__doc__
    return function


def _widened(in_f64: Callable[..., Value]) -> Callable[..., Value]:
    def function(k: K, *operands: Value) -> Value:
        if operands[0].type.dtype == "f64":
            return in_f64(k, *operands)
        return k.cast(in_f64(k, *(k.cast(x, "f64") for x in operands)), "f32")

    function.__doc__ = in_f64.__doc__
    return function


def _exp(k: K, x: Value) -> Value:
    """Rounding to an integer is an addition that leaves `n + 254` in the low bits; halved, those are the exponents of
    two powers of two whose product is `2 ** n`, so that the result may be infinite or denormal."""
    x = k.min(89.0, k.max(-104.0, x))  # in this order NaN stays
    shifted = k.fma(x, 1.4426950408889634, _EXP_MAGIC)
    n = k.sub(shifted, _EXP_MAGIC)
    r = k.fma(n, 2.12194440e-4, k.fma(n, -0.693359375, x))
    bits = k.bitcast(shifted, "i32")
    half = k.lshr(bits, 1)
    powers = [k.bitcast(k.shl(exponent, 23), "f32") for exponent in (half, k.sub(bits, half))]
    return k.mul(k.mul(_exp_near_zero(k, r), powers[0]), powers[1])


def _exp_near_zero(k: K, r: Value) -> Value:
    """Pairs of terms side by side (Estrin): four multiply-adds deep instead of six, which is what loops of exponentials
    wait for."""
    square = k.mul(r, r)
    low = k.fma(r, _EXP[0], 1.0)
    middle, high = k.fma(r, _EXP[2], _EXP[1]), k.fma(r, _EXP[4], _EXP[3])
    return k.fma(k.fma(k.fma(high, square, middle), square, low), r, 1.0)


def exp_of_negative(k: K, x: Value) -> Value:
    """e ** x in f32 for x that is at most 0, or NaN; 0 where the result is below the smallest normal number.

    With `n + 127` in the low bits of the shifted argument one shift makes `2 ** n`, and for the least `n` it makes 0.
    """
    x = k.max(-88.0, x)  # in this order NaN stays; exp(-88) is below the normal numbers
    shifted = k.fma(x, 1.4426950408889634, _EXP_OF_NEGATIVE_MAGIC)
    n = k.sub(shifted, _EXP_OF_NEGATIVE_MAGIC)
    r = k.fma(n, 2.12194440e-4, k.fma(n, -0.693359375, x))
    return k.mul(_exp_near_zero(k, r), k.bitcast(k.shl(k.bitcast(shifted, "i32"), 23), "f32"))


def _log(k: K, x: Value) -> Value:
    tiny = k.compare("lt", x, 1.17549435e-38)
    bits = k.bitcast(k.select(tiny, k.mul(x, 2.0**25), x), "i32")
    shifted = k.sub(bits, 0x3F3504F3)  # sqrt(1/2)
    e = k.cast(k.ashr(shifted, 23), "f32")
    e = k.select(tiny, k.sub(e, 25.0), e)
    f = k.sub(k.bitcast(k.add(k.bitand(shifted, 0x7FFFFF), 0x3F3504F3), "f32"), 1.0)
    z = k.mul(f, f)
    y = k.mul(k.mul(f, z), polynomial(k, f, _LOG))
    y = k.fma(z, -0.5, k.fma(e, -2.12194440e-4, y))
    regular = k.fma(e, 0.693359375, k.add(f, y))
    result = k.select(k.compare("eq", x, INF), INF, regular)
    result = k.select(k.compare("eq", x, 0.0), -INF, result)
    return k.select(k.compare("ult", x, 0.0), NAN, result)


def _erf(k: K, x: Value) -> Value:
    z = k.mul(x, x)
    ratio = k.div(k.mul(x, _in_pairs(k, z, _ERF_P)), _in_pairs(k, z, _ERF_Q))
    return _one_from(k, _ERF_END, x, ratio)


def _one_from(k: K, end: float, x: Value, inner: Value) -> Value:
    """`inner`, and 1 with the sign of x where |x| is `end` or more: exactly, for 1 + f(x) must vanish far below 0. NaN
    stays."""
    return k.select(k.compare("ge", k.abs(x), end), with_sign(k, k.as_value(1.0, x.type), x), inner)


def _in_pairs(k: K, x: Value, coefficients: Sequence[float]) -> Value:
    """A polynomial, highest coefficient first and an odd number of them, two terms at a time: half as deep as Horner's
    rule."""
    square, result = k.mul(x, x), k.as_value(coefficients[0], x.type)
    for odd, even in zip(coefficients[1::2], coefficients[2::2], strict=True):
        result = k.fma(result, square, k.fma(x, odd, even))
    return result


def _tanh(k: K, x: Value) -> Value:
    z = k.mul(x, x)
    ratio = k.div(k.mul(x, polynomial(k, z, _TANH_P)), polynomial(k, z, _TANH_Q))
    return _one_from(k, _TANH_END, x, k.select(k.compare("lt", k.abs(x), 0.0004), x, ratio))


exp = _common(_exp, wide.exp)
log = _common(_log, wide.log)
erf = _common(_erf, wide_erf.erf)
tanh = _common(_tanh, wide.tanh)
expm1, log1p = _widened(wide.expm1), _widened(wide.log1p)
sin, cos, tan = _widened(wide_trigonometry.sin), _widened(wide_trigonometry.cos), _widened(wide_trigonometry.tan)
asin, acos = _widened(wide_trigonometry.asin), _widened(wide_trigonometry.acos)
atan, atan2 = _widened(wide_trigonometry.atan), _widened(wide_trigonometry.atan2)
sinh, cosh = _widened(wide.sinh), _widened(wide.cosh)
asinh, acosh, atanh = _widened(wide.asinh), _widened(wide.acosh), _widened(wide.atanh)
cbrt = _widened(wide.cbrt)
fmod = _widened(remainder.fmod)
exp2 = _widened(wide.exp2)
log2 = _widened(lambda k, x: k.mul(wide.log(k, x), 1.0 / math.log(2.0)))
log10 = _widened(lambda k, x: k.mul(wide.log(k, x), 1.0 / math.log(10.0)))
_power = _widened(wide.power)


def rsqrt(k: K, x: Value) -> Value:
    """1 / sqrt(x)."""
    return k.div(1.0, k.sqrt(x))


def copysign(k: K, x: Value, y: Value) -> Value:
    """|x| with the sign of y."""
    lanes = max(x.type.lanes, y.type.lanes)
    return with_sign(k, k.splat(x, lanes), k.splat(y, lanes))


def round_half_away(k: K, x: Value) -> Value:
    """The nearest integer, halves away from zero: where a half is added, sums just below a half become one, so what is
    added is the number before a half (as LLVM lowers `llvm.round`)."""
    below_half = math.nextafter(0.5, 0.0) if x.type.dtype == "f64" else 0.5 - 2.0**-25
    return k.trunc(k.add(x, with_sign(k, k.as_value(below_half, x.type), x)))


def power(k: K, x: Value, y: Value) -> Value:
    """x ** y; small constant exponents without logarithms."""
    if y.op == "const" and not isinstance(y.attr, tuple):
        short = _constant_power(k, x, y.attr)
        if short is not None:
            return short
    lanes = max(x.type.lanes, y.type.lanes)
    return _power(k, k.splat(x, lanes), k.splat(y, lanes))


def _constant_power(k: K, x: Value, exponent: Any) -> Value | None:
    if exponent == 0.5:
        return k.select(k.compare("eq", x, -INF), INF, k.sqrt(x))
    if exponent == 1.0:
        return x
    if exponent == -1.0:
        return k.div(1.0, x)
    if exponent in (2.0, 3.0):
        square = k.mul(x, x)
        return square if exponent == 2.0 else k.mul(square, x)
    return None


def power_of_integer(k: K, x: Value, y: Value) -> Value:
    """x ** y for an integer y."""
    return power(k, x, k.cast(y, x.type.dtype))


def integer_power(k: K, base: Value, exponent: Value) -> Value:
    """base ** exponent with wrap-around; a negative exponent gives the truncated reciprocal (0 but for bases of size
    1)."""
    lanes = max(base.type.lanes, exponent.type.lanes)
    base, exponent = k.splat(base, lanes), k.splat(exponent, lanes)
    zero, one = k.const(0, *base.type), k.const(1, *base.type)
    positive = k.as_value(k.max(exponent, zero))

    def square_and_multiply(i: Any, result: Value, square: Value, rest: Value) -> tuple[Value, ...]:
        del i
        odd = k.compare("ne", k.bitand(rest, one), zero)
        return k.select(odd, k.mul(result, square), result), k.mul(square, square), k.lshr(rest, one)

    result, _, _ = k.loop(0, BITS[base.type.dtype], 1, square_and_multiply, (one, base, positive))
    alternating = k.select(k.compare("ne", k.bitand(exponent, one), zero), base, one)
    reciprocal = k.select(k.compare("eq", k.abs(base), one), alternating, zero)
    return k.select(k.compare("lt", exponent, zero), reciprocal, result)
