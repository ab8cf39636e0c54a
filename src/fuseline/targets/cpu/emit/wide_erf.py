"""The error function on f64 vectors, by the four intervals of FreeBSD msun (Sun Microsystems, 1993)."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.targets.cpu.emit.wide_math import K, exp, polynomial, with_sign
from fuseline.targets.cpu.kernel_ir.types import Value

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
