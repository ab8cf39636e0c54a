"""Kernels that every image has: copies, fills, and sizes stored as a tensor."""

from __future__ import annotations

from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.functions import FunctionBuilder
from fuseline.targets.cpu.kernel_ir.types import BYTES, I64, PTR, Function, Kernel, Operand

COPY_SYMBOL = "fuseline_copy"
SIZES_SYMBOL = "fuseline_sizes"
FILL_SYMBOLS = {BYTES[dtype]: f"fuseline_fill_{dtype}" for dtype in ("i8", "i16", "i32", "i64")}
"""The kernel that fills with elements of so many bytes."""

COPY_WORKGROUP_BYTES = 64 * 1024
"""Bytes one workgroup of the copy kernel moves, and of a fill kernel writes."""

_LANES = 64
"""Bytes that are moved at a time."""


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


def fill_kernel(dtype: str, machine: Machine) -> Kernel:
    """Bindings (one element, target), sizes (elements of the target); a workgroup writes `COPY_WORKGROUP_BYTES`.

    `dtype` is an integer of the element's width: bits are written, whatever they mean.
    """
    k = KernelBuilder(FILL_SYMBOLS[BYTES[dtype]], machine)
    count, lanes, share = k.size(0), _LANES // BYTES[dtype], COPY_WORKGROUP_BYTES // BYTES[dtype]
    source, target = k.binding(0, dtype, 1), k.binding(1, dtype, count, writable=True)

    def workgroup(number: Operand) -> None:
        element = k.load(source, 0)
        begin = k.mul(number, share)
        length = k.min(k.sub(count, begin), share)
        vectors = k.div(length, lanes)
        wide = k.splat(element, lanes)
        k.loop(0, vectors, 1, lambda i: k.store(target, k.add(begin, k.mul(i, lanes)), wide))
        k.loop(k.mul(vectors, lanes), length, 1, lambda i: k.store(target, k.add(begin, i), element))

    k.loop(k.begin, k.end, 1, workgroup)
    return k.finish()


def built_in_kernels(machine: Machine) -> list[Kernel | Function]:
    """All of them."""
    fills = [fill_kernel(dtype, machine) for dtype in ("i8", "i16", "i32", "i64")]
    return [copy_kernel(machine), *fills, sizes_kernel()]


def sizes_kernel() -> Function:
    """Bindings (target of 64-bit integers); workgroup `i` writes size `i`, one of any number: a `Kernel` has few."""
    f = FunctionBuilder(SIZES_SYMBOL, (PTR, PTR, I64, I64, PTR), exported=True)
    bindings, sizes, begin, end, _ = f.parameters
    source, target = f.words(sizes, end), f.words(f.pointer(f.words(bindings, 1)), end)
    f.loop(begin, end, 1, lambda i: f.store(target, i, f.load(source, i)))
    return f.finish()
