"""What a launch loses that asks of more rows whether they lie in the padding: a comparison and a choice each, before
the loop that reads through the address that was chosen.

Beside the work of that loop they are counted one by one: 9 rows more before 320 rounds of 29 operations are 0.2 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fuseline.targets.cpu.kernel_ir.types import Block, Kernel, Loop, Value, When, While
from fuseline.targets.cpu.merging.outline import is_index_work, ops_of

CHOICE = "select_address"

OPS_PER_CHOICE = 3
"""Of a row that may lie in the padding: where it is, the comparison, the choice."""


class _Inner(NamedTuple):
    """An innermost loop: how many addresses are chosen in the code around it, and how many operations it does on
    data."""

    choices: int
    work: int


def decides_rows(kernel: Kernel) -> bool:
    """Whether a kernel chooses addresses."""
    return any(_chosen(block) for block in _blocks(kernel.body))


def edges_price(kept: Kernel, own: Kernel) -> float:
    """The share of its time that a launch is predicted to lose by the choices that `kept` makes and its `own` kernel
    does not: that of the innermost loop that loses most. Loops are known by what they do."""
    before = dict(_inner(own.body, 0))
    after = dict(_inner(kept.body, 0))
    return max((_lost(one, before.get(loop, _Inner(0, one.work))) for loop, one in after.items()), default=0.0)


def _lost(after: _Inner, before: _Inner) -> float:
    return OPS_PER_CHOICE * max(0, after.choices - before.choices) / max(1, before.work)


def _inner(block: Block, choices: int) -> Iterator[tuple[tuple[str, ...], _Inner]]:
    """The innermost loops of a block, by what they do."""
    choices += _chosen(block)
    for op in block.ops:
        if isinstance(op, Loop | While):
            inside = list(_inner(op.body, choices))
            if any(isinstance(one, Loop | While) for one in op.body.ops):
                yield from inside
            else:
                yield tuple(ops_of(op.body)), _Inner(choices, _rounds(op) * _work(op.body))
        elif isinstance(op, When):
            yield from _inner(op.then, choices)
            yield from _inner(op.otherwise, choices)


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for op in block.ops:
        if isinstance(op, Loop):
            yield from _blocks(op.body)
        elif isinstance(op, While):
            yield from _blocks(op.test)
            yield from _blocks(op.body)
        elif isinstance(op, When):
            yield from _blocks(op.then)
            yield from _blocks(op.otherwise)


def _chosen(block: Block) -> int:
    return sum(isinstance(op, Value) and op.op == CHOICE for op in block.ops)


def _rounds(loop: Loop | While) -> int:
    """Of a loop, as far as they are known; at least one."""
    if isinstance(loop, Loop) and isinstance(loop.lo, int) and isinstance(loop.hi, int):
        return max(1, (loop.hi - loop.lo) // loop.step)
    return 1


def _work(block: Block) -> int:
    return sum(isinstance(op, Value) and not is_index_work(op) for op in block.ops)
