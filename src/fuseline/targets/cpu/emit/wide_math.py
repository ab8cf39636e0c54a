"""Elementary functions on f64 vectors: the rare functions of every float type, and the exact core of the common ones.

f32 arguments are widened, so what is returned to them is right to half a unit in the last place but for double
rounding. For f64 itself the errors are a few ulp (`power`: its exponent's magnitude times that). Coefficients are
FreeBSD msun's (Sun Microsystems, 1993) where they are minimax fits, and Taylor's for `exp`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Value

K = KernelBuilder
INF, NAN = math.inf, math.nan

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
MAGIC = 1.5 * 2.0**52
"""Added to a small integral double, it leaves the integer in the low bits."""

_EXP_TAYLOR = tuple(1.0 / math.factorial(i) for i in range(14, -1, -1))
_LOG = (
    1.479819860511658591e-01,
    1.531383769920937332e-01,
    1.818357216161805012e-01,
    2.222219843214978396e-01,
    2.857142874366239149e-01,
    3.999999999940941908e-01,
    6.666666666666735130e-01,
)


def polynomial(k: K, x: Value, coefficients: Sequence[float]) -> Value:
    """The polynomial with `coefficients`, highest power first, by Horner's rule."""
    total = k.as_value(coefficients[0], x.type)
    for coefficient in coefficients[1:]:
        total = k.fma(total, x, coefficient)
    return total


def _integer(k: K, integral: Value) -> Value:
    """A small integral f64 as i64, without the conversion that AVX2 lacks."""
    return k.sub(k.bitcast(k.add(integral, MAGIC), "i64"), k.bitcast(k.const(MAGIC, *integral.type), "i64"))


def _power_of_two(k: K, exponent: Value) -> Value:
    """2 ** exponent for i64 lanes within the normal range."""
    return k.bitcast(k.shl(k.add(exponent, 1023), 52), "f64")


def scale(k: K, x: Value, exponent: Value) -> Value:
    """x * 2 ** exponent in two steps, so that the result may overflow or be denormal."""
    half = k.sub(
        k.bitcast(k.add(k.floor(k.mul(exponent, 0.5)), MAGIC), "i64"), k.bitcast(k.const(MAGIC, *x.type), "i64")
    )
    rest = k.sub(_integer(k, exponent), half)
    return k.mul(k.mul(x, _power_of_two(k, half)), _power_of_two(k, rest))


def exp(k: K, x: Value) -> Value:
    """e ** x."""
    x = k.min(800.0, k.max(-800.0, x))  # in this order NaN stays
    n = k.rint(k.mul(x, 1.4426950408889634))
    r = k.fma(n, -_LN2_LOW, k.fma(n, -_LN2_HIGH, x))
    return scale(k, polynomial(k, r, _EXP_TAYLOR), n)


def exp2(k: K, x: Value) -> Value:
    """2 ** x."""
    x = k.min(1100.0, k.max(-1100.0, x))
    n = k.rint(x)
    return scale(k, polynomial(k, k.mul(k.sub(x, n), math.log(2.0)), _EXP_TAYLOR), n)


def expm1(k: K, x: Value) -> Value:
    """e ** x - 1, accurate near 0."""
    near = k.mul(x, polynomial(k, x, _EXP_TAYLOR[:-1]))
    return k.select(k.compare("lt", k.abs(x), 0.4), near, k.sub(exp(k, x), 1.0))


def _normalised(k: K, x: Value) -> tuple[Value, Value]:
    """`(m, e)` with `x = m * 2 ** e` and m in [sqrt(1/2), sqrt(2)), for positive finite x."""
    tiny = k.compare("lt", x, 2.2250738585072014e-308)
    bits = k.bitcast(k.select(tiny, k.mul(x, 2.0**54), x), "i64")
    shifted = k.sub(bits, k.const(0x3FE6A09E667F3BCD, *bits.type))  # sqrt(1/2)
    field = k.bitcast(k.bitor(k.lshr(k.add(shifted, 1 << 62), 52), k.const(0x4330000000000000, *bits.type)), "f64")
    exponent = k.sub(field, 2.0**52 + 1024.0)
    exponent = k.select(tiny, k.sub(exponent, 54.0), exponent)
    mantissa = k.add(k.bitand(shifted, (1 << 52) - 1), k.const(0x3FE6A09E667F3BCD, *bits.type))
    return k.bitcast(mantissa, "f64"), exponent


def log(k: K, x: Value) -> Value:
    """The natural logarithm; -inf at 0, NaN below."""
    m, e = _normalised(k, x)
    f = k.sub(m, 1.0)
    s = k.div(f, k.add(f, 2.0))
    z = k.mul(s, s)
    remainder = k.mul(z, polynomial(k, z, _LOG))
    half = k.mul(k.mul(f, f), 0.5)
    inner = k.sub(half, k.fma(s, k.add(half, remainder), k.mul(e, _LN2_LOW)))
    return _log_ends(k, x, k.sub(k.mul(e, _LN2_HIGH), k.sub(inner, f)))


def _log_ends(k: K, x: Value, regular: Value) -> Value:
    result = k.select(k.compare("eq", x, 0.0), -INF, k.select(k.compare("eq", x, INF), INF, regular))
    return k.select(k.compare("ult", x, 0.0), NAN, result)  # unordered or negative


def log1p(k: K, x: Value) -> Value:
    """log(1 + x), accurate near 0."""
    u = k.add(x, 1.0)
    correction = k.div(k.sub(x, k.sub(u, 1.0)), u)
    result = k.add(log(k, u), correction)
    plain = k.bitor(k.compare("eq", u, INF), k.compare("eq", u, 0.0))
    return k.select(k.compare("eq", x, 0.0), x, k.select(plain, log(k, u), result))


def with_sign(k: K, size: Value, sign: Value) -> Value:
    """|size| with the sign of `sign` (NaN and zeros included)."""
    dtype = "i64" if size.type.dtype == "f64" else "i32"
    top = k.const(-(1 << (63 if dtype == "i64" else 31)), dtype, sign.type.lanes)
    bits = k.bitor(k.bitand(k.bitcast(sign, dtype), top), k.bitcast(k.abs(size), dtype))
    return k.bitcast(bits, size.type.dtype)


def tanh(k: K, x: Value) -> Value:
    """The hyperbolic tangent."""
    t = expm1(k, k.mul(k.min(20.0, k.abs(x)), 2.0))
    return with_sign(k, k.div(t, k.add(t, 2.0)), x)


def sinh(k: K, x: Value) -> Value:
    """The hyperbolic sine."""
    size = k.abs(x)
    t = expm1(k, size)
    e = exp(k, k.mul(size, 0.5))
    regular = k.mul(k.add(t, k.div(t, k.add(t, 1.0))), 0.5)
    return with_sign(k, k.select(k.compare("gt", size, 700.0), k.mul(k.mul(e, 0.5), e), regular), x)


def cosh(k: K, x: Value) -> Value:
    """The hyperbolic cosine."""
    e = exp(k, k.mul(k.abs(x), 0.5))
    square = k.mul(e, e)
    return k.select(
        k.compare("gt", k.abs(x), 700.0), k.mul(k.mul(e, 0.5), e), k.mul(k.add(square, k.div(1.0, square)), 0.5)
    )


def asinh(k: K, x: Value) -> Value:
    """The inverse hyperbolic sine."""
    a = k.abs(x)
    square = k.mul(a, a)
    regular = log1p(k, k.add(a, k.div(square, k.add(k.sqrt(k.add(square, 1.0)), 1.0))))
    return with_sign(k, k.select(k.compare("gt", a, 2.0**28), k.add(log(k, a), math.log(2.0)), regular), x)


def acosh(k: K, x: Value) -> Value:
    """The inverse hyperbolic cosine; NaN below 1."""
    t = k.sub(x, 1.0)
    regular = log1p(k, k.add(t, k.sqrt(k.mul(t, k.add(t, 2.0)))))
    result = k.select(k.compare("gt", x, 2.0**28), k.add(log(k, x), math.log(2.0)), regular)
    return k.select(k.compare("lt", x, 1.0), NAN, result)


def atanh(k: K, x: Value) -> Value:
    """The inverse hyperbolic tangent; NaN beyond 1."""
    a = k.abs(x)
    return with_sign(k, k.mul(log1p(k, k.div(k.mul(a, 2.0), k.sub(1.0, a))), 0.5), x)


def cbrt(k: K, x: Value) -> Value:
    """The cube root: the exponential of a third of the logarithm, then one step of Newton's method."""
    a = k.abs(x)
    y = exp(k, k.mul(log(k, a), 1.0 / 3.0))
    y = k.sub(y, k.div(k.sub(y, k.div(a, k.mul(y, y))), 3.0))
    regular = k.bitand(k.compare("gt", a, 0.0), k.compare("lt", a, INF))
    return with_sign(k, k.select(regular, y, a), x)


def power(k: K, x: Value, y: Value) -> Value:
    """x ** y as in C: 1 for y = 0 or x = 1, NaN for a negative x and a y that is no integer."""
    size = k.abs(x)
    result = exp(k, k.mul(y, log(k, size)))
    integral = k.compare("eq", k.floor(y), y)
    half = k.mul(y, 0.5)
    odd = k.bitand(integral, k.compare("ne", k.floor(half), half))
    negative = k.compare("lt", k.bitcast(x, "i64"), 0)
    result = k.select(k.bitand(negative, odd), k.neg(result), result)
    undefined = k.bitand(
        k.bitand(k.compare("lt", x, 0.0), k.compare("gt", x, -INF)), k.xor(integral, k.const(1, *integral.type))
    )
    result = k.select(undefined, NAN, result)
    result = k.select(k.bitand(k.compare("eq", size, 1.0), k.compare("eq", k.abs(y), INF)), 1.0, result)
    return k.select(k.bitor(k.compare("eq", y, 0.0), k.compare("eq", x, 1.0)), 1.0, result)
