"""Functions that NumPy lacks, on whole arrays and accurate to float64.

`erf` follows FreeBSD's msun `s_erf.c` (Sun Microsystems, 1993): a rational approximation per interval, error below 1
ulp.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_PP = (
    1.28379167095512558561e-01,
    -3.25042107247001499370e-01,
    -2.84817495755985104766e-02,
    -5.77027029648944159157e-03,
    -2.37630166566501626084e-05,
)
_QQ = (
    1.0,
    3.97917223959155352819e-01,
    6.50222499887672944485e-02,
    5.08130628187576562776e-03,
    1.32494738004321644526e-04,
    -3.96022827877536812320e-06,
)
_ERX = 8.45062911510467529297e-01
_PA = (
    -2.36211856075265944077e-03,
    4.14856118683748331666e-01,
    -3.72207876035701323847e-01,
    3.18346619901161753674e-01,
    -1.10894694282396677476e-01,
    3.54783043256182359371e-02,
    -2.16637559486879084300e-03,
)
_QA = (
    1.0,
    1.06420880400844228286e-01,
    5.40397917702171048937e-01,
    7.18286544141962662868e-02,
    1.26171219808761642112e-01,
    1.36370839120290507362e-02,
    1.19844998467991074170e-02,
)
_RA = (
    -9.86494403484714822705e-03,
    -6.93858572707181764372e-01,
    -1.05586262253232909814e01,
    -6.23753324503260060396e01,
    -1.62396669462573470355e02,
    -1.84605092906711035994e02,
    -8.12874355063065934246e01,
    -9.81432934416914548592e00,
)
_SA = (
    1.0,
    1.96512716674392571292e01,
    1.37657754143519042600e02,
    4.34565877475229228821e02,
    6.45387271733267880336e02,
    4.29008140027567833386e02,
    1.08635005541779435134e02,
    6.57024977031928170135e00,
    -6.04244152148580987438e-02,
)
_RB = (
    -9.86494292470009928597e-03,
    -7.99283237680523006574e-01,
    -1.77579549177547519889e01,
    -1.60636384855821916062e02,
    -6.37566443368389627722e02,
    -1.02509513161107724954e03,
    -4.83519191608651397019e02,
)
_SB = (
    1.0,
    3.03380607434824582924e01,
    3.25792512996573918826e02,
    1.53672958608443695994e03,
    3.19985821950859553908e03,
    2.55305040643316442583e03,
    4.74528541206955367215e02,
    -2.24409524465858183362e01,
)


def _ratio(x: Array, top: tuple[float, ...], bottom: tuple[float, ...]) -> Array:
    return np.polynomial.polynomial.polyval(x, top) / np.polynomial.polynomial.polyval(x, bottom)


def _small(x: Array) -> Array:
    """|x| < 0.84375."""
    return x + x * _ratio(x * x, _PP, _QQ)


def _middle(x: Array) -> Array:
    """0.84375 <= x < 1.25."""
    return _ERX + _ratio(x - 1.0, _PA, _QA)


def _tail(x: Array, top: tuple[float, ...], bottom: tuple[float, ...]) -> Array:
    """1 - exp(-x^2) R(1/x^2) / x, with the square split so that its rounding does not reach the exponent."""
    high = (x.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)
    exponent = np.exp(-high * high - 0.5625) * np.exp((high - x) * (high + x) + _ratio(1.0 / (x * x), top, bottom))
    return 1.0 - exponent / x


def erf(x: Array) -> Array:
    """The error function, elementwise; any float dtype, the result in the same dtype, NaN for NaN."""
    x = np.asarray(x)
    wide = np.ascontiguousarray(x, dtype=np.float64).reshape(-1)
    size = np.abs(wide)
    out = np.where(np.isnan(wide), wide, np.copysign(1.0, wide))
    for low, high, approximation in _INTERVALS:
        chosen = np.flatnonzero((size >= low) & (size < high))
        if chosen.size:
            out[chosen] = np.copysign(approximation(size[chosen]), wide[chosen])
    return out.reshape(x.shape).astype(x.dtype)


_INTERVALS = (
    (0.0, 0.84375, _small),
    (0.84375, 1.25, _middle),
    (1.25, 1 / 0.35, lambda x: _tail(x, _RA, _SA)),
    (1 / 0.35, 6.0, lambda x: _tail(x, _RB, _SB)),
)


def round_half_away(x: Array) -> Array:
    """Round to the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(np.ones_like(x), x), whole)


def integer_power(base: Array, exponent: Array) -> Array:
    """`base ** exponent` with wrap-around; a negative exponent gives the truncated quotient `1 / base ** -exponent`."""
    positive = np.power(base, np.maximum(exponent, 0))
    odd = np.where((exponent & 1) == 1, base, np.ones_like(base))
    reciprocal = np.where(np.abs(base) == 1, odd, np.zeros_like(base))
    return np.where(exponent < 0, reciprocal, positive).astype(base.dtype)


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """`a * b + c` with one rounding for types up to float32 (the product of two float32 is exact in float64)."""
    dtype = np.asarray(a).dtype
    if dtype == np.float64:
        return a * b + c
    return (np.float64(1) * a * b + c).astype(dtype)


def leading_zeros(x: Array) -> Array:
    """The number of leading zero bits of unsigned `x`."""
    width = x.dtype.itemsize * 8
    filled, shift = x, 1
    while shift < width:
        filled = filled | (filled >> filled.dtype.type(shift))
        shift *= 2
    return (width - np.bitwise_count(filled)).astype(x.dtype)


def trailing_zeros(x: Array) -> Array:
    """The number of trailing zero bits of unsigned `x`; its width for zero."""
    one = x.dtype.type(1)
    return np.bitwise_count((x & (~x + one)) - one).astype(x.dtype)
