"""What a launch loses that shares its code: an innermost loop whose memory operands were a base and a displacement has
a base for each distance that is a size now. Those take registers, and where there are none left, loads.

Measured (AVX-512, 2.0 GHz, one thread, the least of 40 to 150 runs, in turn with the kernel's own code), as shares of
the time of a launch:

    register tiles of floats, 8 to 13 bases more                    0.95 to 1.11
    windows of 7 and 12 pixels, 6 to 13 bases more                  1.06 to 1.16
    tiles of integer pairs, 13 bases more                           0.97 to 1.01, 1.05 to 1.08 where windows meet edges
    sizes in bounds, grids and strides between tiles only           0.97 to 1.01
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fuseline.targets.cpu.kernel_ir.row_pointers import StridedRow, runtime_rows, strided_rows
from fuseline.targets.cpu.kernel_ir.types import Address, Block, Kernel, Loop, Value, When, While
from fuseline.targets.cpu.merging.outline import EFFECTS, is_index_work, ops_of

BASE_SHARE = 0.014
"""Of the time of an innermost loop, what a base more takes."""

FREE_REGISTERS = 4
"""Of those that addresses take, what no loop is slower for: rows and columns, a stride and three times as many."""

PAIR_SHARE = 0.001
"""The same in a loop over integer pairs that read all rows through one base, and so move them with one index."""


def price(merged: Kernel, own: Kernel) -> float:
    """The share of its time that a launch is predicted to lose with `merged` in place of its `own` kernel: that of the
    innermost loop that loses most. Loops are known by what they do."""
    before = _bases_of(own)
    return max((_lost(loop, before.get(loop, after), after) for loop, after in _bases_of(merged).items()), default=0.0)


def _lost(loop: tuple[str, ...], before: int, after: int) -> float:
    """What a loop loses that had `before` bases."""
    pairs = any(op.startswith("dot_pairs") for op in loop)
    return max(0, after - max(before, FREE_REGISTERS)) * (PAIR_SHARE if pairs else BASE_SHARE)


def _bases_of(kernel: Kernel) -> dict[tuple[str, ...], int]:
    """For each innermost loop that computes, how many registers its memory operands have."""
    strided = strided_rows(kernel.body, runtime_rows(kernel.body))
    loops = [body for body in _innermost(kernel.body) if _computes(body)]
    return {tuple(ops_of(body)): len(set(_registers(body, strided))) for body in loops}


def _innermost(block: Block) -> Iterator[Block]:
    """The bodies of loops without loops in them, in order."""
    for op in block.ops:
        if isinstance(op, Loop | While):
            inner = list(_innermost(op.body))
            yield from inner or [op.body]
        elif isinstance(op, When):
            yield from _innermost(op.then)
            yield from _innermost(op.otherwise)


def _computes(block: Block) -> bool:
    return any(isinstance(op, Value) and not is_index_work(op) and op.op not in EFFECTS for op in block.ops)


def _registers(block: Block, strided: Mapping[Value, StridedRow]) -> Iterator[tuple[int, ...]]:
    """Each memory operand of a block without its displacement: its base, or that of the row it is counted from, and the
    multiples of a stride in between."""
    for op in block.ops:
        if isinstance(op, Value) and op.args and isinstance(op.args[0], Address):
            root, index = id(op.args[0].root), op.args[0].index
            start = index.args[0] if isinstance(index, Value) and index.op == "add" else index
            row = strided.get(start) if isinstance(start, Value) else None
            if row is None:
                yield root, id(index) if isinstance(index, Value) else 0
                continue
            yield root, id(row.first)
            yield 1, id(row.stride)
            if row.times % 4 == 3:
                yield 3, id(row.stride)
