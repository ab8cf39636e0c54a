"""`x mod pi/2` for arguments of any size, after Payne and Hanek (1983): only the digits of 2/pi that matter for x are
multiplied.

2/pi is a table of 24-bit digits. Those before digit j0 multiply x into multiples of 4 (whole turns) and are left out;
seven digits from there on give the fraction to 2**-90. x is split into halves of 26 and 27 bits, so every product is
exact, and the sum is kept in two parts.
"""

from __future__ import annotations

import math
from functools import cache

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Value

K = KernelBuilder

DIGIT_BITS = 24
DIGITS_USED = 7
_EXPONENT_MAGIC = 0x4330000000000000  # 2**52: or-ed with a small integer it is 2**52 plus that integer
_HALF_PI_HIGH, _HALF_PI_LOW = math.pi / 2, 6.123233995736766e-17


@cache
def digits_of_two_over_pi(count: int = 50) -> tuple[float, ...]:
    """The first `count` digits of 2/pi to the base 2**24 (the integer part is 0)."""
    guard = 64
    bits = count * DIGIT_BITS + guard
    pi = 16 * _arctangent_of_inverse(5, bits) - 4 * _arctangent_of_inverse(239, bits)
    value = (2 << (2 * bits)) // pi >> guard
    return tuple(float((value >> (DIGIT_BITS * (count - 1 - i))) & (2**DIGIT_BITS - 1)) for i in range(count))


def _arctangent_of_inverse(n: int, bits: int) -> int:
    """arctan(1/n) as a fixed-point number of `bits` bits (Machin's series)."""
    term = (1 << (bits + 32)) // n
    total, square, k = term, n * n, 1
    while term:
        term //= -square
        k += 2
        total += term // k
    return total >> 32


def reduce_huge(k: K, x: Value) -> tuple[Value, Value]:
    """`(r, n)` with `x = n * pi/2 + r` up to whole turns, |r| <= pi/4, n integral; f64 lanes of any size (NaN for what
    is not finite)."""
    bits = k.bitcast(x, "i64")
    field = k.bitand(k.lshr(bits, 52), 0x7FF)
    exponent = k.sub(k.bitcast(k.bitor(field, _EXPONENT_MAGIC), "f64"), 2.0**52 + 1023.0)
    first = k.max(k.floor(k.mul(k.sub(exponent, 54.0), 1.0 / DIGIT_BITS)), 0.0)
    index = k.bitand(k.bitcast(k.add(first, 2.0**52), "i64"), 63)
    scale = k.bitcast(k.shl(k.sub(1023, k.mul(index, DIGIT_BITS)), 52), "f64")
    scaled = k.mul(x, scale)
    high = k.bitcast(k.bitand(k.bitcast(scaled, "i64"), -(1 << 27)), "f64")
    turns, rest = _turns(k, (high, k.sub(scaled, high)), index)
    n = k.rint(turns)
    fraction = k.sub(turns, n)
    r = k.fma(k.add(fraction, rest), _HALF_PI_HIGH, k.mul(fraction, _HALF_PI_LOW))
    return r, n


def _turns(k: K, halves: tuple[Value, Value], index: Value) -> tuple[Value, Value]:
    """`x * 2/pi mod 4` as a sum of two parts, the second tiny."""
    table = k.table("two_over_pi", (*digits_of_two_over_pi(), *([0.0] * (64 + DIGITS_USED - 50))), "f64")
    total, rest = k.as_value(0.0, halves[0].type), k.as_value(0.0, halves[0].type)
    for i in range(DIGITS_USED):
        digit = k.mul(k.gather(table, k.add(index, i)), 2.0 ** (-DIGIT_BITS * (i + 1)))
        for half in halves:
            term = k.mul(half, digit)
            term = k.sub(term, k.mul(k.trunc(k.mul(term, 0.25)), 4.0))  # exact, and small terms stay as they are
            total, error = _two_sum(k, total, term)
            rest = k.add(rest, error)
    return total, rest


def _two_sum(k: K, a: Value, b: Value) -> tuple[Value, Value]:
    """`a + b` and what its rounding lost."""
    total = k.add(a, b)
    rounded = k.sub(total, a)
    return total, k.add(k.sub(a, k.sub(total, rounded)), k.sub(b, rounded))
