"""Sines, cosines, tangents and their inverses on f64 vectors, as exact as those of `wide_math`.

Coefficients are FreeBSD msun's (Sun Microsystems, 1993), and Cephes' (Moshier, 1989) for `atan`.
"""

from __future__ import annotations

import math

from fuseline.targets.cpu.emit.argument_reduction import reduce_huge
from fuseline.targets.cpu.emit.wide_math import INF, MAGIC, NAN, K, polynomial, with_sign
from fuseline.targets.cpu.kernel_ir.types import Value

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


def sin_cos(k: K, x: Value) -> tuple[Value, Value]:
    """Sine and cosine of any argument; NaN for what is not finite. Vectors with a lane beyond 1.6e6 take the slow
    reduction."""
    n = k.rint(k.mul(x, 2.0 / math.pi))
    r = x
    for term in _HALF_PI:
        r = k.fma(n, -term, r)
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
    quadrant = k.bitcast(k.add(n, MAGIC), "i64")
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
