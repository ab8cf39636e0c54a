"""What a launch loses that shares its code: an innermost loop whose memory operands were a base and a displacement has
a base for each distance that is a size now. Those take registers, and where there are none left, loads.

Measured (AVX-512, 2.0 GHz, one thread): register tiles of 9x48 over 1,024 and 2,048 steps, 8 bases more: 1.11 and 0.98
of the time; windows of 7 and 12 pixels, 6 to 13 bases more: 1.07 to 1.10. Sizes anywhere else, in bounds of loops,
grids and strides between tiles: 0.98 to 1.01.
"""

from __future__ import annotations

from collections.abc import Iterator

from fuseline.targets.cpu.kernel_ir.types import Address, Block, Kernel, Loop, Value, When, While

BASE_SHARE = 0.014
"""Of the time of an innermost loop, what a base more takes."""

MOST_SHARE = 0.03
"""Of the time of a launch, what may be lost."""


def price(merged: Kernel, own: Kernel) -> float:
    """The share of its time that a launch is predicted to lose with `merged` in place of its `own` kernel: that of the
    innermost loop that loses most. Both have the same loops but for those that run once."""
    found = zip(_bases_of(merged), _bases_of(own), strict=False)
    return max((BASE_SHARE * max(0, after - before) for after, before in found), default=0.0)


def _bases_of(kernel: Kernel) -> list[int]:
    return [len(set(_bases(body))) for body in _innermost(kernel.body) if _computes(body)]


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
    return any(isinstance(op, Value) and op.type.is_float and op.op not in ("load", "splat") for op in block.ops)


def _bases(block: Block) -> Iterator[tuple[int, int]]:
    """Each memory operand of a block without its displacement."""
    for op in block.ops:
        if isinstance(op, Value) and op.args and isinstance(op.args[0], Address):
            yield id(op.args[0].root), id(op.args[0].index) if isinstance(op.args[0].index, Value) else 0
