"""Which values are made ahead of the grid (`analysis/made_ahead.py`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from xdsl.dialects import linalg
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.made_ahead import LEAST_OPERATIONS, MOST_BYTES, REPEATS
from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.dispatch.is_internal import is_internal
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.targets.cpu.emit.coordinates import static_upper_bound
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.nests.recompute_cost import cost
from fuseline.targets.cpu.families.nests.stages import Staging
from fuseline.targets.cpu.families.nests.traffic import elements
from fuseline.targets.cpu.kernel_ir.types import BYTES


def values_ahead(
    staging: Staging, lane: LoopRef | None, threads: int, given_up: Collection[SSAValue] = ()
) -> list[SSAValue]:
    """The values that are made before the grid begins, in order; none where the kernel runs as a part of another, once
    for each of its blocks.

    Args:
        lane: where lanes run along; what does not change along it leaves the loop by itself. given_up: values that are
        worth storing but not in step with the grid: each of several readers would evaluate them.
    """
    found, room = list[SSAValue](), MOST_BYTES
    for op in reversed(staging.ops if lane is not None and not staging.view.serial else []):
        if op in staging.live and is_generic(op) and _is_worth_it(staging, op, lane, threads, given_up):
            size = _bytes(staging, op.results[0])
            if size is not None and size <= room:
                found, room = [op.results[0], *found], room - size
    return found


def _is_worth_it(
    staging: Staging, op: linalg.ops.GenericOp, lane: LoopRef | None, threads: int, given_up: Collection[SSAValue]
) -> bool:
    value, *others = op.results
    if others or StructuredOp(op).reduction or value in staging.stored or not is_internal(value):
        return False
    if next(staging.stored_below(value), None) is not None:
        return False
    if threads == 1 and value in given_up and staging.loose.get(value):
        return True
    if lane not in staging.axes.of_value(value):
        return False
    again = max((_times(staging, value, reader) for reader in _readers(staging, value)), default=0.0)
    return again >= REPEATS * threads and cost(op, staging.live, staging.stored) >= LEAST_OPERATIONS


def _readers(staging: Staging, value: SSAValue) -> Iterator[Operation]:
    return (use.operation for use in value.uses if use.operation in staging.live)


def _times(staging: Staging, value: SSAValue, reader: Operation) -> float:
    """How often `reader` reads each element."""
    if not is_generic(reader):
        return 0.0
    own = set(staging.axes.of_value(value))
    return elements(staging, [axis for axis in staging.axes.of_op(reader) if axis is not None and axis not in own])


def _bytes(staging: Staging, value: SSAValue) -> int | None:
    count = static_upper_bound(staging.view.shapes.dims(value))
    return count * BYTES[dtype_of(value.type)] if count is not None else None
