"""Where an op stands relative to a block, and what the ops of a block read."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Block, Operation, SSAValue

from fuseline.ir.fast.direct import collect_inside, operands_of, set_operand


def within(op: Operation, block: Block) -> bool:
    """Whether `op` lies in `block`, at any depth."""
    home = op.parent
    while home is not None:
        if home is block:
            return True
        parent = home.parent_op()
        home = parent.parent if parent is not None else None
    return False


def ops_inside(op: Operation, blocks: set[int] | None = None) -> list[Operation]:
    """Every op in the regions of `op`, at any depth, in order; the identities of their blocks are added to `blocks`."""
    found: list[Operation] = []
    collect_inside(op, found, blocks)
    return found


def replace_inside(op: Operation, values: Mapping[SSAValue, SSAValue]) -> None:
    """Let the ops inside `op` read `values[v]` in place of `v`; names are handed on.

    One walk over the ops: a value may have users all over the program, far more than stand here.
    """
    by_identity = {id(old): new for old, new in values.items()}
    for inner in ops_inside(op):
        for i, operand in enumerate(operands_of(inner)):
            new = by_identity.get(id(operand))
            if new is not None:
                set_operand(inner, i, new)
    for old, new in values.items():
        if new.name_hint is None:
            new.name_hint = old.name_hint
