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

from collections.abc import Iterator

from fuseline.targets.cpu.kernel_ir.types import Address, Block, Kernel, Loop, Value, When, While
from fuseline.targets.cpu.merging.outline import EFFECTS, is_index_work, ops_of

BASE_SHARE = 0.014
"""Of the time of an innermost loop, what a base more takes."""

PAIR_SHARE = 0.001
"""The same in a loop over integer pairs that read all rows through one base, and so move them with one index."""

MOST_SHARE = 0.03
"""Of the time of a launch, what may be lost."""


def price(merged: Kernel, own: Kernel) -> float:
    """The share of its time that a launch is predicted to lose with `merged` in place of its `own` kernel: that of the
    innermost loop that loses most. Loops are known by what they do."""
    before = _bases_of(own)
    return max((_lost(loop, before.get(loop, after), after) for loop, after in _bases_of(merged).items()), default=0.0)


def _lost(loop: tuple[str, ...], before: int, after: int) -> float:
    """What a loop loses that had `before` bases."""
    pairs = any(op.startswith("dot_pairs") for op in loop) and before <= _ONE_OF_EACH
    return max(0, after - before) * (PAIR_SHARE if pairs else BASE_SHARE)


_ONE_OF_EACH = 2
"""A base for rows and one for columns."""


def _bases_of(kernel: Kernel) -> dict[tuple[str, ...], int]:
    """For each innermost loop that computes, how many bases its memory operands have."""
    return {tuple(ops_of(body)): len(set(_bases(body))) for body in _innermost(kernel.body) if _computes(body)}


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


def _bases(block: Block) -> Iterator[tuple[int, int]]:
    """Each memory operand of a block without its displacement."""
    for op in block.ops:
        if isinstance(op, Value) and op.args and isinstance(op.args[0], Address):
            yield id(op.args[0].root), id(op.args[0].index) if isinstance(op.args[0].index, Value) else 0
