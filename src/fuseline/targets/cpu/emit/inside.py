"""Whether coordinates lie inside a size: known while a kernel is built, or the conditions that find out."""

from __future__ import annotations

from fuseline.targets.cpu.emit.coordinates import Index
from fuseline.targets.cpu.emit.known_range import known_range
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value


def decided(inner: Index, size: Operand, live: Operand) -> bool | None:
    """Whether all live lanes of a coordinate lie in `[0, size)` (True), none does (False), or that is only known at run
    time."""
    base = known_range(inner.base) if inner.vector is None and inner.stride >= 0 else None
    if base is None or not isinstance(size, int) or not isinstance(live, int):
        return None
    low, high = base[0], base[1] + (live - 1) * inner.stride
    if low >= 0 and high < size:
        return True
    return False if high < 0 or low >= size else None


def run_inside(kernel: KernelBuilder, inner: Index, size: Operand, live: Operand) -> list[Value]:
    """Conditions under which the `live` lanes of a run lie in `[0, size)`."""
    last = kernel.add(inner.base, kernel.mul(kernel.sub(live, 1), inner.stride))
    return [kernel.compare("ge", inner.base, 0), kernel.compare("lt", last, size)]


def both(kernel: KernelBuilder, a: Value, b: Value) -> Value:
    """Both conditions; a constant one is left out."""
    if a.op == "const":
        return b if a.attr else a
    if b.op == "const":
        return a if b.attr else b
    return kernel.bitand(a, b)
