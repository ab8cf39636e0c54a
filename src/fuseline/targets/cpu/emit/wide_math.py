"""Elementary functions on f64 vectors: the rare functions of every float type, and the exact core of the common ones.

f32 arguments are widened, so what is returned to them is right to half a unit in the last place but for double
rounding. For f64 itself the errors are a few ulp (`power`: its exponent's magnitude times that). Coefficients are
FreeBSD msun's (Sun Microsystems, 1993) where they are minimax fits, Cephes' (Moshier, 1989) for `atan`, and Taylor's
for `exp`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuseline.targets.cpu.emit.argument_reduction import reduce_huge
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Value

K = KernelBuilder
INF, NAN = math.inf, math.nan

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_MAGIC = 1.5 * 2.0**52  # added to a small integral double, it leaves the integer in the low bits
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
_SIN = (
    1.58969099521155010221e-10,
    -2.50507602534068634195e-08,
    2.75573137070700676789e-06,
    -1.98412698298579493134e-04,
    8.33333333332248946124e-03,
    -1.66666666666666324348e-01,
)
_COS = (
    -1.13596475577881948265e-11,
    2.08757232129817482790e-09,
    -2.75573143513906633035e-07,
    2.48015872894767294178e-05,
    -1.38888888888741095749e-03,
    4.16666666666666019037e-02,
)
_HALF_PI = (
    1.57079632673412561417e00,
    6.07710050630396597660e-11,
    2.02226624871116645580e-21,
    8.47842766036889956997e-32,
)
_QUICK_REDUCTION_LIMIT = 1.6e6  # up to here a multiple of pi/2's leading 33 bits is exact
_ATAN_P = (
    -8.750608600031904122785e-1,
    -1.615753718733365076637e1,
    -7.500855792314704667340e1,
    -1.228866684490136173410e2,
    -6.485021904942025371773e1,
)
_ATAN_Q = (
    1.0,
    2.485846490142306297962e1,
    1.650270098316988542046e2,
    4.328810604912902668951e2,
    4.853903996359136964868e2,
    1.945506571482613964425e2,
)


def polynomial(k: K, x: Value, coefficients: Sequence[float]) -> Value:
    """The polynomial with `coefficients`, highest power first, by Horner's rule."""
    total = k.as_value(coefficients[0], x.type)
    for coefficient in coefficients[1:]:
        total = k.fma(total, x, coefficient)
    return total


def _integer(k: K, integral: Value) -> Value:
    """A small integral f64 as i64, without the conversion that AVX2 lacks."""
    return k.sub(k.bitcast(k.add(integral, _MAGIC), "i64"), k.bitcast(k.const(_MAGIC, *integral.type), "i64"))


def _power_of_two(k: K, exponent: Value) -> Value:
    """2 ** exponent for i64 lanes within the normal range."""
    return k.bitcast(k.shl(k.add(exponent, 1023), 52), "f64")


def scale(k: K, x: Value, exponent: Value) -> Value:
    """x * 2 ** exponent in two steps, so that the result may overflow or be denormal."""
    half = k.sub(
        k.bitcast(k.add(k.floor(k.mul(exponent, 0.5)), _MAGIC), "i64"), k.bitcast(k.const(_MAGIC, *x.type), "i64")
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


def sin_cos(k: K, x: Value) -> tuple[Value, Value]:
    """Sine and cosine of any argument; NaN for what is not finite. Vectors with a lane beyond 1.6e6 take the slow
    reduction."""
    n = k.rint(k.mul(x, 2.0 / math.pi))
    r = x
    for part in _HALF_PI:
        r = k.fma(n, -part, r)
    size = k.abs(x)
    huge = k.compare("gt", size, _QUICK_REDUCTION_LIMIT)

    def slow() -> tuple[Value, Value]:
        far, turns = reduce_huge(k, x)
        return k.select(huge, far, r), k.select(huge, turns, n)

    farthest = k.reduce(
        "max", k.select(huge, size, 0.0)
    )  # no NaN among them, which would hide what is huge in other lanes
    r, n = k.when(k.compare("gt", farthest, _QUICK_REDUCTION_LIMIT), slow, lambda: (r, n))
    z = k.mul(r, r)
    sine = k.fma(k.mul(r, z), polynomial(k, z, _SIN), r)
    cosine = k.fma(k.mul(z, z), polynomial(k, z, _COS), k.fma(z, -0.5, 1.0))
    quadrant = k.bitcast(k.add(n, _MAGIC), "i64")
    swapped = k.compare("ne", k.bitand(quadrant, 1), 0)
    s, c = k.select(swapped, cosine, sine), k.select(swapped, sine, cosine)
    flip_s = k.compare("ne", k.bitand(quadrant, 2), 0)
    flip_c = k.compare("ne", k.bitand(k.add(quadrant, 1), 2), 0)
    return k.select(flip_s, k.neg(s), s), k.select(flip_c, k.neg(c), c)


def sin(k: K, x: Value) -> Value:
    """The sine; see `sin_cos`."""
    return k.select(k.compare("eq", x, 0.0), x, sin_cos(k, x)[0])


def cos(k: K, x: Value) -> Value:
    """The cosine; see `sin_cos`."""
    return sin_cos(k, x)[1]


def tan(k: K, x: Value) -> Value:
    """The tangent; see `sin_cos`."""
    s, c = sin_cos(k, x)
    return k.select(k.compare("eq", x, 0.0), x, k.div(s, c))


def atan(k: K, x: Value) -> Value:
    """The inverse tangent."""
    a = k.abs(x)
    big, middle = k.compare("gt", a, 2.41421356237309504880), k.compare("gt", a, 0.66)
    reduced = k.select(middle, k.div(k.sub(a, 1.0), k.add(a, 1.0)), a)
    reduced = k.select(big, k.div(-1.0, a), reduced)
    offset = k.select(big, math.pi / 2, k.select(middle, math.pi / 4, k.as_value(0.0, x.type)))
    low = k.select(big, 6.123233995736765886130e-17, k.select(middle, 3.0616169978683829e-17, k.as_value(0.0, x.type)))
    z = k.mul(reduced, reduced)
    ratio = k.div(k.mul(z, polynomial(k, z, _ATAN_P)), polynomial(k, z, _ATAN_Q))
    result = k.add(offset, k.add(k.fma(reduced, ratio, low), reduced))
    result = k.select(k.compare("eq", a, INF), math.pi / 2, result)
    return with_sign(k, result, x)


def atan2(k: K, y: Value, x: Value) -> Value:
    """The angle of the point `(x, y)`, in (-pi, pi]."""
    a, b = k.abs(y), k.abs(x)
    swapped = k.compare("gt", a, b)
    top, bottom = k.select(swapped, b, a), k.select(swapped, a, b)
    ratio = k.select(k.compare("eq", top, bottom), 1.0, k.div(top, bottom))  # inf / inf and 0 / 0 too
    ratio = k.select(k.compare("eq", bottom, 0.0), 0.0, ratio)
    angle = atan(k, ratio)
    angle = k.select(swapped, k.sub(math.pi / 2, angle), angle)
    negative = k.compare("lt", k.bitcast(x, "i64"), 0)
    angle = k.select(negative, k.sub(math.pi, angle), angle)
    return k.select(k.compare("uno", x, y), NAN, with_sign(k, angle, y))


def asin(k: K, x: Value) -> Value:
    """The inverse sine; NaN beyond 1."""
    return atan2(k, x, k.sqrt(k.mul(k.sub(1.0, x), k.add(x, 1.0))))


def acos(k: K, x: Value) -> Value:
    """The inverse cosine; NaN beyond 1."""
    return atan2(k, k.sqrt(k.mul(k.sub(1.0, x), k.add(x, 1.0))), x)


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


_ERF_SMALL = (
    (
        -2.37630166566501626084e-05,
        -5.77027029648944159157e-03,
        -2.84817495755985104766e-02,
        -3.25042107247001499370e-01,
        1.28379167095512558561e-01,
    ),
    (
        -3.96022827877536812320e-06,
        1.32494738004321644526e-04,
        5.08130628187576562776e-03,
        6.50222499887672944485e-02,
        3.97917223959155352819e-01,
        1.0,
    ),
)
_ERF_MIDDLE = (
    (
        -2.16637559486879084300e-03,
        3.54783043256182359371e-02,
        -1.10894694282396677476e-01,
        3.18346619901161753674e-01,
        -3.72207876035701323847e-01,
        4.14856118683748331666e-01,
        -2.36211856075265944077e-03,
    ),
    (
        1.19844998467991074170e-02,
        1.36370839120290507362e-02,
        1.26171219808761642112e-01,
        7.18286544141962662868e-02,
        5.40397917702171048937e-01,
        1.06420880400844228286e-01,
        1.0,
    ),
)
_ERF_NEAR_TAIL = (
    (
        -9.81432934416914548592e00,
        -8.12874355063065934246e01,
        -1.84605092906711035994e02,
        -1.62396669462573470355e02,
        -6.23753324503260060396e01,
        -1.05586262253232909814e01,
        -6.93858572707181764372e-01,
        -9.86494403484714822705e-03,
    ),
    (
        -6.04244152148580987438e-02,
        6.57024977031928170135e00,
        1.08635005541779435134e02,
        4.29008140027567833386e02,
        6.45387271733267880336e02,
        4.34565877475229228821e02,
        1.37657754143519042600e02,
        1.96512716674392571292e01,
        1.0,
    ),
)
_ERF_FAR_TAIL = (
    (
        -4.83519191608651397019e02,
        -1.02509513161107724954e03,
        -6.37566443368389627722e02,
        -1.60636384855821916062e02,
        -1.77579549177547519889e01,
        -7.99283237680523006574e-01,
        -9.86494292470009928597e-03,
    ),
    (
        -2.24409524465858183362e01,
        4.74528541206955367215e02,
        2.55305040643316442583e03,
        3.19985821950859553908e03,
        1.53672958608443695994e03,
        3.25792512996573918826e02,
        3.03380607434824582924e01,
        1.0,
    ),
)


def _ratio(k: K, x: Value, fit: tuple[Sequence[float], Sequence[float]]) -> Value:
    return k.div(polynomial(k, x, fit[0]), polynomial(k, x, fit[1]))


def erf(k: K, x: Value) -> Value:
    """The error function, by msun's four intervals."""
    a = k.min(6.0, k.abs(x))
    small = k.fma(a, _ratio(k, k.mul(a, a), _ERF_SMALL), a)
    middle = k.add(_ratio(k, k.sub(a, 1.0), _ERF_MIDDLE), 8.45062911510467529297e-01)
    inverse = k.div(1.0, k.mul(a, a))
    tail = k.select(k.compare("lt", a, 1 / 0.35), _ratio(k, inverse, _ERF_NEAR_TAIL), _ratio(k, inverse, _ERF_FAR_TAIL))
    high = k.bitcast(k.bitand(k.bitcast(a, "i64"), k.const(-(1 << 32), "i64", a.type.lanes)), "f64")
    exponent = k.mul(
        exp(k, k.sub(k.neg(k.mul(high, high)), 0.5625)), exp(k, k.fma(k.sub(high, a), k.add(high, a), tail))
    )
    far = k.sub(1.0, k.div(exponent, a))
    result = k.select(k.compare("lt", a, 0.84375), small, k.select(k.compare("lt", a, 1.25), middle, far))
    return k.select(k.compare("uno", x, x), x, with_sign(k, result, x))
