"""Where an op stands relative to a block."""

from __future__ import annotations

from xdsl.ir import Block, Operation


def within(op: Operation | None, block: Block) -> bool:
    """Whether `op` lies in `block`, at any depth."""
    while op is not None:
        if op.parent is block:
            return True
        op = op.parent_op()
    return False
