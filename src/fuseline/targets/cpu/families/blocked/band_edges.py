"""Rows of a band that the whole image has not: the first band begins above it, the last one ends below.

    y[b, r] = select(1 <= 28 b + r < 113, x[b, r], 0)      =>      y[b, r] = x[b, r], and then the rows outside are 0

Asked of each element, that takes as long as a sixth of a convolution of three channels does.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, linalg
from xdsl.ir import Operation, OpResult, Region, SSAValue

from fuseline.analysis.structured import is_generic, splat_value, yielded
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.targets.cpu.families.blocked.band_numbers import row_numbers
from fuseline.targets.cpu.families.blocked.dispatch import BlockedDispatch

_AT_LEAST, _LESS = 5, 2
"""The predicates `sge` and `slt`."""


@dataclass(frozen=True, slots=True)
class Edge:
    """`op` yields, as `result`, `number` in row `r` of band `b` unless `first <= step * b + r < end`."""

    op: linalg.ops.GenericOp
    result: int
    step: int
    first: int
    end: int
    number: float | int


def edge_of(dispatch: BlockedDispatch, value: SSAValue, band: LoopRef, row: LoopRef) -> Edge | None:
    """The edge that is put into `value` last."""
    if not isinstance(value, OpResult) or not is_generic(value.op):
        return None
    chosen = yielded(value.op)[value.index].owner
    if not isinstance(chosen, arith.SelectOp):
        return None
    number, limits = splat_value(chosen.rhs), _limits(chosen.cond)
    if number is None or limits is None:
        return None
    place, first, end = limits
    loops = dispatch.axes.of_op(value.op)
    known = band in loops and row in loops
    step = row_numbers(value.op, loops.index(band), loops.index(row)).steps.get(place) if known else None
    return Edge(value.op, value.index, step, first, end, number) if step is not None else None


def _limits(condition: SSAValue) -> tuple[SSAValue, int, int] | None:
    """`x`, `a` and `b` of `a <= x and x < b`."""
    both = condition.owner
    if not isinstance(both, arith.AndIOp):
        return None
    low, high = both.lhs.owner, both.rhs.owner
    if not isinstance(low, arith.CmpiOp) or not isinstance(high, arith.CmpiOp) or low.lhs is not high.lhs:
        return None
    first, end = splat_value(low.rhs), splat_value(high.rhs)
    asked = low.predicate.value.data, high.predicate.value.data
    known = isinstance(first, int) and isinstance(end, int) and asked == (_AT_LEAST, _LESS)
    return (low.lhs, int(first), int(end)) if known and first is not None and end is not None else None


def without_edge(body: Region, edge: Edge) -> None:
    """Let a copy of the body of an edge's op yield what it makes of each row, whether the image has it or not."""
    last = body.block.last_op
    assert last is not None
    chosen = last.operands[edge.result].owner
    assert isinstance(chosen, arith.SelectOp)
    last.operands[edge.result] = chosen.lhs
    _drop(body, chosen)


def _drop(body: Region, unused: Operation) -> None:
    """Erase `unused`, and what was there for it alone."""
    for op in [op for op in reversed(list(body.block.ops)) if op.results]:
        if op is unused or not any(list(result.uses) for result in op.results):
            body.block.erase_op(op)
