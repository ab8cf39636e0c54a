"""Which values an op may use: those made before it, in its own block or around it. xDSL's verifier does not ask."""

from __future__ import annotations

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsolatedFromAbove


def misplaced_use(module: Operation) -> tuple[Operation, SSAValue] | None:
    """The first op that uses a value which is not there where it stands, and the value; None where all are.

    In a region of several blocks the values of its other blocks count as there.
    """
    return next((found for region in module.regions if (found := _in_region(region, set())) is not None), None)


def _in_region(region: Region, known: set[SSAValue]) -> tuple[Operation, SSAValue] | None:
    """`known` is what is there around the region, and again so afterwards."""
    blocks = list(region.blocks)
    others = (
        [value for block in blocks for value in (*block.args, *(result for op in block.ops for result in op.results))]
        if len(blocks) > 1
        else []
    )
    known.update(others)
    found = next((found for block in blocks if (found := _in_block(block, known)) is not None), None)
    known.difference_update(others)
    return found


def _in_block(block: Block, known: set[SSAValue]) -> tuple[Operation, SSAValue] | None:
    added: list[SSAValue] = list(block.args)
    known.update(added)
    for op in block.ops:
        missing = next((value for value in op.operands if value not in known), None)
        if missing is not None:
            return op, missing
        inside = set[SSAValue]() if op.has_trait(IsolatedFromAbove) else known
        for region in op.regions:
            found = _in_region(region, inside)
            if found is not None:
                return found
        known.update(op.results)
        added += op.results
    if block.parent is not None and len(block.parent.blocks) == 1:
        known.difference_update(added)
    return None
