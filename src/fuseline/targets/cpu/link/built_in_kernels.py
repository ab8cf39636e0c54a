"""Kernels that every image has: copies, and sizes stored as a tensor."""

from __future__ import annotations

from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.functions import FunctionBuilder
from fuseline.targets.cpu.kernel_ir.types import I64, PTR, Function, Kernel, Operand

COPY_SYMBOL = "fuseline_copy"
SIZES_SYMBOL = "fuseline_sizes"

COPY_WORKGROUP_BYTES = 64 * 1024
"""Bytes one workgroup of the copy kernel moves."""

_LANES = 64


def copy_kernel(machine: Machine) -> Kernel:
    """Bindings (source, target), sizes (bytes); a workgroup moves `COPY_WORKGROUP_BYTES`."""
    k = KernelBuilder(COPY_SYMBOL, machine)
    count = k.size(0)
    source, target = k.binding(0, "i8", count), k.binding(1, "i8", count, writable=True)

    def move(at: Operand, lanes: int) -> None:
        k.store(target, at, k.load(source, at, lanes, align=1), align=1)

    def workgroup(number: Operand) -> None:
        begin = k.mul(number, COPY_WORKGROUP_BYTES)
        length = k.min(k.sub(count, begin), COPY_WORKGROUP_BYTES)
        vectors = k.div(length, _LANES)
        k.loop(0, vectors, 1, lambda i: move(k.add(begin, k.mul(i, _LANES)), _LANES))
        k.loop(k.mul(vectors, _LANES), length, 1, lambda i: move(k.add(begin, i), 1))

    k.loop(k.begin, k.end, 1, workgroup)
    return k.finish()


def sizes_kernel() -> Function:
    """Bindings (target of 64-bit integers); workgroup `i` writes size `i`, one of any number: a `Kernel` has few."""
    f = FunctionBuilder(SIZES_SYMBOL, (PTR, PTR, I64, I64, PTR), exported=True)
    bindings, sizes, begin, end, _ = f.parameters
    source, target = f.words(sizes, end), f.words(f.pointer(f.words(bindings, 1)), end)
    f.loop(begin, end, 1, lambda i: f.store(target, i, f.load(source, i)))
    return f.finish()
