"""One digit of whole numbers in lanes of 64 bits, which no ISA divides: as f64, where numbers below 2**53 are exact and
a quotient of two of them is never so near below an integer that it is rounded to it.

    digit of n = (a * size + b) * inner + c        b = n / inner mod size

Numbers below 2**52 become f64 and back by their bits, since not every ISA converts lanes of 64 bits either: 2**52 + n
has the bits of n behind those of 2**52.
"""

from __future__ import annotations

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

_FIRST = 2.0**52
_FIRST_BITS = 0x4330000000000000


def digit_of_lanes(kernel: KernelBuilder, numbers: Value, inner: Operand, size: Operand | None) -> Value:
    """`numbers / inner`, modulo `size` where there is one, of i64 lanes in 0..2**52."""
    quotient = _floats(kernel, numbers)
    if inner != 1:
        quotient = kernel.floor(kernel.div(quotient, _divisor(kernel, inner, numbers.type.lanes)))
    if size is not None:
        divisor = _divisor(kernel, size, numbers.type.lanes)
        quotient = kernel.sub(quotient, kernel.mul(kernel.floor(kernel.div(quotient, divisor)), divisor))
    return kernel.sub(kernel.bitcast(kernel.add(quotient, _FIRST), "i64"), _FIRST_BITS)


def _divisor(kernel: KernelBuilder, size: Operand, lanes: int) -> Value:
    return _floats(kernel, kernel.splat(kernel.as_value(size), lanes))


def _floats(kernel: KernelBuilder, numbers: Value) -> Value:
    return kernel.sub(kernel.bitcast(kernel.add(numbers, _FIRST_BITS), "f64"), _FIRST)
