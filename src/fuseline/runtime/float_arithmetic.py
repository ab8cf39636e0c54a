"""What code of a host step (`fuseline.scalar_code`) computes with floats of 32 and 64 bits, as kernels compute it.

Numbers are kept as Python's floats, those of 32 bits rounded after each operation: of sums, products, quotients and
roots of two such numbers in 64 bits that is the nearest one (Figueroa, "When is double rounding innocuous?", 1995).
Floats that no integer is (NaN, numbers out of range) become the integers that compilers for x86 make of them.
"""

from __future__ import annotations

import ctypes
import math
import operator
import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from fuseline.scalar_code import FLOAT_COMPARISONS, as_signed

Maker: TypeAlias = Callable[[int, int], Callable[[Any, Any, Any], Any]]
"""The rule for the bits of the first operand and those of the result."""

_EXACT = 1 << 53
"""Up to here every integer is a float of 64 bits."""


def of_bits(number: int, bits: int) -> float:
    """The float that has the low `bits` of `number`."""
    data = (number & ((1 << bits) - 1)).to_bytes(bits // 8, "little")
    return struct.unpack("<f" if bits == 32 else "<d", data)[0]


def _nearest(number: float) -> float:
    """Of 32 bits; too large ones become infinite."""
    return ctypes.c_float(number).value


def _rounded(function: Callable[[float, float], float]) -> Maker:
    def made(given: int, bits: int) -> Callable[[Any, Any, Any], Any]:
        if bits == 64:
            return lambda a, b, c: function(a, b)
        return lambda a, b, c: ctypes.c_float(function(a, b)).value

    return made


def _always(rule: Callable[[Any, Any, Any], Any]) -> Maker:
    """Results that need no rounding."""
    return lambda given, bits: rule


def _quotient(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def _root(a: float, _: float) -> float:
    return math.nan if a < 0 else math.sqrt(a)


def _whole(function: Callable[[float], int]) -> Maker:
    """To an integer, which has the sign of the number even where it is 0."""
    return _always(lambda a, b, c: math.copysign(function(a), a) if math.isfinite(a) else a)


def _compared(name: str) -> Maker:
    """A comparison by the name of its predicate: true, false, or an order that NaN has always (u) or never (o)."""
    if name in ("true", "false"):
        return _always(lambda a, b, c: -(name == "true"))
    with_nan = -(name[0] == "u")
    if name in ("ord", "uno"):
        return _always(lambda a, b, c: with_nan if a != a or b != b else ~with_nan)
    order = getattr(operator, name[1:])
    return _always(lambda a, b, c: with_nan if a != a or b != b else -order(a, b))


# to integers and back -------------------------------------------------------------------------------------------------


def _truncated(a: float, bits: int) -> int:
    """Toward zero; the lowest number of `bits` for what is none of them."""
    half = 1 << (bits - 1)
    whole = math.trunc(a) if math.isfinite(a) else half
    return whole if -half <= whole < half else -half


def _to_signed(given: int, bits: int) -> Callable[[Any, Any, Any], Any]:
    return lambda a, b, c: as_signed(_truncated(a, max(bits, 32)), bits)


def _to_unsigned(given: int, bits: int) -> Callable[[Any, Any, Any], Any]:
    """By the signed conversion, of what is left above half the range; narrow ones by that to 32 bits."""
    if bits < 32:
        return _to_signed(given, bits)
    middle = 1 << (bits - 1)
    return lambda a, b, c: as_signed(
        _truncated(a - middle, bits) ^ -middle if a >= middle else _truncated(a, bits), bits
    )


def _of_integer(*, signed: bool) -> Maker:
    def made(given: int, bits: int) -> Callable[[Any, Any, Any], Any]:
        mask = -1 if signed else (1 << given) - 1
        rounded = float if bits == 64 else _nearest_to_integer
        return lambda a, b, c: rounded(a & mask)

    return made


def _nearest_to_integer(a: int) -> float:
    """Of 32 bits, rounded once: what leaves 53 bits says by its last one whether it was cut off."""
    if -_EXACT <= a <= _EXACT:
        return _nearest(a)
    cut, rest = divmod(abs(a), 1 << 11)
    return _nearest(math.copysign((cut | (rest > 0)) << 11, a))


FLOAT_MAKERS: Mapping[str, Maker] = {
    "addf": _rounded(lambda a, b: a + b),
    "subf": _rounded(lambda a, b: a - b),
    "mulf": _rounded(lambda a, b: a * b),
    "divf": _rounded(_quotient),
    "sqrt": _rounded(_root),
    "negf": _always(lambda a, b, c: -a),
    "absf": _always(lambda a, b, c: abs(a)),
    "maximumf": _always(lambda a, b, c: a if a > b or a != a else b),
    "minimumf": _always(lambda a, b, c: a if a < b or a != a else b),
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "trunc": _whole(math.trunc),
    "roundeven": _whole(round),
    "extf": _always(lambda a, b, c: a),
    "truncf": _always(lambda a, b, c: _nearest(a)),
    "sitofp": _of_integer(signed=True),
    "uitofp": _of_integer(signed=False),
    "fptosi": _to_signed,
    "fptoui": _to_unsigned,
    **{name: _compared(name.removesuffix("f")) for name in FLOAT_COMPARISONS},
}
