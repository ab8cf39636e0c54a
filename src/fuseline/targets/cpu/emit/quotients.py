"""Quotients of sizes of which no bound is known."""

from __future__ import annotations

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand


def floor_of_any(kernel: KernelBuilder, numerator: Operand, denominator: Operand) -> Operand:
    """`floor(numerator / denominator)` for a numerator of either sign and a denominator of 0 (which gives 0) or more.

    A negative number is divided by way of the other side of -1, so that nothing negative is divided: `floor(-n / d) ==
    -1 - floor((n - 1) / d)`.
    """
    negative = kernel.compare("lt", numerator, 0)
    magnitude = kernel.select(negative, kernel.sub(-1, numerator), numerator)
    quotient = kernel.div(magnitude, kernel.max(denominator, 1))
    signed = kernel.select(negative, kernel.sub(-1, quotient), quotient)
    return kernel.select(kernel.compare("eq", denominator, 0), 0, signed)
