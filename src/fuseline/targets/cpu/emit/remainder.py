"""The floating-point remainder (C's `fmod`), exact for every quotient.

The divisor is scaled by a power of two until the quotient has at most 23 bits, the rounded quotient's multiple of it is
taken away, and so on with smaller scales. Nothing is lost: the quotient times either half of the divisor (26 and 27
bits) is exact, and so is each difference, as it is a multiple of the divisor's last place and no larger than the
divisor.
"""

from __future__ import annotations

from typing import Any

from fuseline.targets.cpu.emit.wide_math import with_sign
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Value

K = KernelBuilder
INF, NAN = float("inf"), float("nan")

QUOTIENT_BITS = 22
"""By how much the exponents of dividend and divisor differ at most in a step."""

_SMALLEST_NORMAL, _TO_NORMAL_BITS = 2.0**-1022, 54.0
_MAGIC = 1.5 * 2.0**52  # added to a small integral double, it leaves the integer in the low bits
_EXPONENT_MAGIC = 0x4330000000000000  # 2**52: or-ed with a small integer it is 2**52 plus that integer


def fmod(k: K, x: Value, y: Value) -> Value:
    """x - y * trunc(x / y) without rounding, with the sign of x, for f64 lanes; NaN for an infinite x and for y = 0."""
    lanes = max(x.type.lanes, y.type.lanes)
    x, y = k.splat(x, lanes), k.splat(y, lanes)
    rest, divisor = k.abs(x), k.abs(y)
    exponent = _exponent(k, divisor)

    def reduce(i: Any, rest: Value) -> tuple[Value, ...]:
        del i
        far = k.max(k.sub(k.sub(_exponent(k, k.abs(rest)), exponent), float(QUOTIENT_BITS)), 0.0)
        return (_step(k, rest, _scaled(k, divisor, far)),)

    farthest = k.cast(k.reduce("max", k.sub(_exponent(k, rest), exponent)), "i64")
    (rest,) = k.loop(0, k.div(k.max(k.sub(farthest, 1), 0), QUOTIENT_BITS), 1, reduce, (rest,))
    rest = _step(k, rest, divisor)
    rest = k.select(k.compare("lt", rest, 0.0), k.add(rest, divisor), rest)
    rest = k.select(k.compare("eq", divisor, INF), k.abs(x), rest)
    wrong = k.bitor(k.compare("uno", x, y), k.bitor(k.compare("eq", k.abs(x), INF), k.compare("eq", y, 0.0)))
    return k.select(wrong, NAN, with_sign(k, rest, x))


def _step(k: K, rest: Value, divisor: Value) -> Value:
    """The rest nearest to 0; the quotient stays below 2 ** 23, where its multiple of the divisor may exceed all
    numbers."""
    quotient = k.min(k.rint(k.div(rest, divisor)), 2.0 ** (QUOTIENT_BITS + 1) - 1.0)
    high = k.bitcast(k.bitand(k.bitcast(divisor, "i64"), -(1 << 27)), "f64")
    return k.sub(k.sub(rest, k.mul(quotient, high)), k.mul(quotient, k.sub(divisor, high)))


def _exponent(k: K, x: Value) -> Value:
    """The binary exponent of x >= 0 as a float, that of a denormal number too; something below all of them for 0."""
    tiny = k.compare("lt", x, _SMALLEST_NORMAL)
    field = k.lshr(k.bitcast(k.select(tiny, k.mul(x, 2.0**_TO_NORMAL_BITS), x), "i64"), 52)
    exponent = k.sub(k.bitcast(k.bitor(field, _EXPONENT_MAGIC), "f64"), 2.0**52 + 1023.0)
    return k.select(tiny, k.sub(exponent, _TO_NORMAL_BITS), exponent)


def _scaled(k: K, x: Value, exponent: Value) -> Value:
    """x * 2 ** exponent for an exponent from 0 to 3 * 1023 and a result that is a normal number."""
    third = k.floor(k.mul(exponent, 1 / 3))
    factor = _power_of_two(k, third)
    return k.mul(k.mul(k.mul(x, factor), factor), _power_of_two(k, k.sub(exponent, k.mul(third, 2.0))))


def _power_of_two(k: K, exponent: Value) -> Value:
    bits = k.bitcast(k.add(exponent, _MAGIC + 1023.0), "i64")
    return k.bitcast(k.shl(bits, 52), "f64")
