"""Numbers that are computed inside of dispatch regions, as somebody wrote them: they are computed before, so that a
region takes them as it takes any value from outside."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, OpResult

from fuseline.ir.fast.direct import body_of, detach, insert_before, operands_of, ops_of
from fuseline.ir.flow import DispatchRegionOp
from fuseline.passes.cleanup.scalar_values import is_scalar_op


def hoist_scalars(block: Block) -> None:
    """Put the scalar ops of each region of `block` before it, but for those that read what the region makes."""
    for region in ops_of(block):
        if type(region) is DispatchRegionOp:
            for op in ops_of(body_of(region)):
                if is_scalar_op(op) and not _reads_inside(op, body_of(region)):
                    detach(op)
                    insert_before(op, region)


def _reads_inside(op: Operation, body: Block) -> bool:
    return any(type(value) is OpResult and value.op.parent is body for value in operands_of(op))


def with_regions_opened(block: Block) -> Iterator[Operation]:
    """The ops of `block`, those of a region before the region itself."""
    for op in ops_of(block):
        if type(op) is DispatchRegionOp:
            yield from ops_of(body_of(op))
        yield op
