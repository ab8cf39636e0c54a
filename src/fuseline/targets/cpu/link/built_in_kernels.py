"""Kernels that every image has: copies, fills, and sizes stored as a tensor."""

from __future__ import annotations

from functools import reduce
from typing import TypeAlias

from fuseline.program.box_rows import ROW_LOOPS
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.functions import FunctionBuilder
from fuseline.targets.cpu.kernel_ir.types import BYTES, I64, PTR, Function, Kernel, MemRef, Operand

COPY_SYMBOL = "fuseline_copy"
COPY_ROWS_SYMBOL = "fuseline_copy_rows"
SIZES_SYMBOL = "fuseline_sizes"
FILL_SYMBOLS = {BYTES[dtype]: f"fuseline_fill_{dtype}" for dtype in ("i8", "i16", "i32", "i64")}
"""The kernel that fills with elements of so many bytes."""

COPY_WORKGROUP_BYTES = 64 * 1024
"""Bytes one workgroup of the copy kernel moves, and of a fill kernel writes."""

_LANES, _WORD = 64, 8
"""Bytes that are moved at a time, and of what is left."""

Place: TypeAlias = tuple[MemRef, Operand]
"""A buffer, and bytes from its start."""


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


def copy_rows_kernel(machine: Machine) -> Kernel:
    """Bindings (source, target), sizes (bytes of a row; rows of three loops; bytes between rows of each in the target);
    a workgroup moves a row. Those of the source lie one behind the other."""
    k = KernelBuilder(COPY_ROWS_SYMBOL, machine)
    length, counts = k.size(0), [k.size(1 + i) for i in range(ROW_LOOPS)]
    strides = [k.size(1 + ROW_LOOPS + i) for i in range(ROW_LOOPS)]
    ends = [k.mul(k.sub(count, 1), stride) for count, stride in zip(counts, strides, strict=True)]
    source = k.binding(0, "i8", reduce(k.mul, counts, length))
    target = k.binding(1, "i8", reduce(k.add, ends, length), writable=True)

    def row(number: Operand) -> None:
        whole = k.div(number, counts[2])
        at = k.div(whole, counts[1]), k.rem(whole, counts[1]), k.rem(number, counts[2])
        begin = reduce(k.add, (k.mul(i, stride) for i, stride in zip(at, strides, strict=True)))
        _move_row(k, (source, k.mul(number, length)), (target, begin), length)

    k.loop(k.begin, k.end, 1, row)
    return k.finish()


def _move_row(k: KernelBuilder, source: Place, target: Place, length: Operand) -> None:
    """Move `length` bytes: in vectors, then words, then single bytes."""

    def move(at: Operand, lanes: int) -> None:
        value = k.load(source[0], k.add(source[1], at), lanes, align=1)
        k.store(target[0], k.add(target[1], at), value, align=1)

    done: Operand = 0
    for lanes in (_LANES, _WORD, 1):
        end = k.mul(k.div(length, lanes), lanes)
        k.loop(done, end, lanes, lambda at, lanes=lanes: move(at, lanes))
        done = end


def built_in_kernels(machine: Machine) -> list[Kernel | Function]:
    """All of them."""
    fills = [fill_kernel(dtype, machine) for dtype in ("i8", "i16", "i32", "i64")]
    return [copy_kernel(machine), copy_rows_kernel(machine), *fills, sizes_kernel()]


def sizes_kernel() -> Function:
    """Bindings (target of 64-bit integers); workgroup `i` writes size `i`, one of any number: a `Kernel` has few."""
    f = FunctionBuilder(SIZES_SYMBOL, (PTR, PTR, I64, I64, PTR), exported=True)
    bindings, sizes, begin, end, _ = f.parameters
    source, target = f.words(sizes, end), f.words(f.pointer(f.words(bindings, 1)), end)
    f.loop(begin, end, 1, lambda i: f.store(target, i, f.load(source, i)))
    return f.finish()
