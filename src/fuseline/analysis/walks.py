"""Reductions whose terms are neutral but for a few, or follow from an order: made in one walk over what they combine,
not as they are written.

scan      out[.., i, ..] = init + sum over j of (j <= i ? element[.., j, ..] : 0)        (or j < i, j >= i, j > i)
scatter   out[.., i, ..] = init + sum over e of (place[.., e, ..] == i ? element[.., e, ..] : 0)
          (or any op that combines in any order)
          out[.., i, ..] = the last element[.., e, ..] of those with place[.., e, ..] == i, init where there is none
select    kept, at = element[.., j, ..], j for the last j, in order, that replaces what is kept so far
          (the largest; the first, the last)

Ranks, which follow from an order, are in `ranks.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, linalg
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.structured import StructuredOp, splat_value, yielded
from fuseline.ir.dim import Dim
from fuseline.ir.reachable import reachable

_EQUAL = 0
"""An `arith.cmpi` predicate."""

_SWAPPED = {2: 4, 3: 5, 4: 2, 5: 3}
"""Each predicate of signed order with its sides exchanged."""

ORDERS = {5: (True, False), 4: (False, False), 3: (True, True), 2: (False, True)}
"""By how the result's index compares with the summand's: whether the element itself counts, and whether the walk is
backwards."""


@dataclass(frozen=True, slots=True)
class Scan:
    """`root` combines along its one reduction loop what lies before (`reverse`: behind) the place of its loop `walked`;
    else `neutral`. `inclusive`: the element at that place counts."""

    root: StructuredOp
    element: SSAValue
    neutral: SSAValue
    walked: int
    inclusive: bool
    reverse: bool


@dataclass(frozen=True, slots=True)
class Scatter:
    """`root` combines `element` into index `position` of its loop `scattered`, for every turn of its one reduction
    loop; else `neutral`. Without a neutral element it puts `element` in the place of what is there."""

    root: StructuredOp
    element: SSAValue
    neutral: SSAValue | None
    position: SSAValue
    scattered: int


def scan_of(view: StructuredOp, extents: Sequence[Dim]) -> Scan | None:
    """The scan that the reduction `view` over `extents` is, None for any other."""
    if len(view.op.results) != 1 or len(view.reduction) != 1:
        return None
    term = term_of(view, yielded(view.op)[0])
    select = term.owner if term is not None else None
    order = _order(view, select.cond.owner) if isinstance(select, arith.SelectOp) else None
    if order is None or not isinstance(select, arith.SelectOp) or splat_value(select.rhs) is None:
        return None
    walked, inclusive, reverse = order
    if extents[walked] != extents[view.reduction[0]] or walked in loops_behind(view, select.lhs):
        return None
    return Scan(view, select.lhs, select.rhs, walked, inclusive, reverse)


def _order(view: StructuredOp, condition: Operation | Block) -> tuple[int, bool, bool] | None:
    """The loop of the result that is compared with the reduction loop, whether the element itself counts, and whether
    the walk is backwards."""
    if not isinstance(condition, arith.CmpiOp) or condition.predicate.value.data not in ORDERS:
        return None
    predicate, loops = condition.predicate.value.data, [loop_of(condition.lhs), loop_of(condition.rhs)]
    if loops[0] == view.reduction[0] and loops[1] in view.parallel:
        loops, predicate = loops[::-1], _SWAPPED[predicate]
    if loops[0] is None or loops[0] not in view.parallel or loops[1] != view.reduction[0]:
        return None
    return (loops[0], *ORDERS[predicate])


def scalars_behind(view: StructuredOp, value: SSAValue) -> set[SSAValue]:
    """`value` and every scalar that it is made of, as far as the body goes. Each is looked at once: bodies may use one
    again and again."""

    def operands(scalar: SSAValue) -> Sequence[SSAValue]:
        return scalar.op.operands if isinstance(scalar, OpResult) and view.op.is_ancestor(scalar.op) else ()

    return set(reachable([value], operands))


def loops_behind(view: StructuredOp, value: SSAValue) -> frozenset[int]:
    """The loops that a scalar of the body varies with."""
    found = set[int]()
    for scalar in scalars_behind(view, value):
        if isinstance(scalar, BlockArgument):
            found |= set(used_dims(view.maps[scalar.index])) if scalar.owner is view.body else set()
        elif isinstance(scalar.owner, linalg.ops.IndexOp) and view.op.is_ancestor(scalar.owner):
            found.add(scalar.owner.dim.value.data)
    return frozenset(found)


def term_of(view: StructuredOp, total: SSAValue) -> SSAValue | None:
    """What `total` combines with the running result."""
    accumulator = view.body.args[-1]
    if not isinstance(total, OpResult) or len(total.op.operands) != 2 or accumulator not in total.op.operands:
        return None
    first, second = total.op.operands
    return second if first is accumulator else first


def scatter_of(view: StructuredOp) -> Scatter | None:
    """The scatter that `view` is; it must have one result and one reduction loop."""
    total = yielded(view.op)[0]
    replaced = _replaced(view, total)
    term = total if replaced else term_of(view, total)
    select = term.owner if term is not None else None
    if not isinstance(select, arith.SelectOp) or not (replaced or splat_value(select.rhs) is not None):
        return None
    hit = select.cond.owner
    if not isinstance(hit, arith.CmpiOp) or hit.predicate.value.data != _EQUAL:
        return None
    for index, position in ((hit.lhs, hit.rhs), (hit.rhs, hit.lhs)):
        loop = loop_of(index)
        moving = loops_behind(view, position) | loops_behind(view, select.lhs)
        if loop in view.parallel and loop not in moving and view.reduction[0] in moving:
            return Scatter(view, select.lhs, None if replaced else select.rhs, position, loop)
    return None


def _replaced(view: StructuredOp, total: SSAValue) -> bool:
    """Whether `total` is the running result or something that does not depend on it."""
    select, accumulator = total.owner, view.body.args[-1]
    return isinstance(select, arith.SelectOp) and select.rhs is accumulator and len(list(accumulator.uses)) == 1


def loop_of(value: SSAValue) -> int | None:
    """The loop whose counter a scalar is."""
    op = value.owner
    if isinstance(op, arith.IndexCastOp):
        op = op.input.owner
    return op.dim.value.data if isinstance(op, linalg.ops.IndexOp) else None


@dataclass(frozen=True, slots=True)
class Selection:
    """`root` keeps, along its one reduction loop, an element of input `element` and the loop's counter where it stood;
    both change together, where `replaces` holds, which depends on the element and on the one kept so far (and never on
    where that stood). `kept` and `position` are its results."""

    root: StructuredOp
    element: int
    replaces: SSAValue
    kept: int
    position: int


def selection_of(view: StructuredOp) -> Selection | None:
    """The argument reduction that `view` is, None for any other: `select(c, x, acc)` beside `select(c, i, at)` (ArgMax,
    ArgMin and their kin)."""
    if len(view.op.results) != 2 or len(view.reduction) != 1:
        return None
    chosen = [value.owner for value in yielded(view.op)]
    running = view.body.args[len(view.inputs) :]
    for kept, position in ((0, 1), (1, 0)):
        value, where = chosen[kept], chosen[position]
        if (
            not isinstance(value, arith.SelectOp)
            or not isinstance(where, arith.SelectOp)
            or value.cond is not where.cond
        ):
            continue
        held = value.rhs is running[kept] and where.rhs is running[position] and loop_of(where.lhs) == view.reduction[0]
        if (
            held
            and _is_input(view, value.lhs)
            and running[position] not in scalars_behind(view, value.cond)
            and not _counts(view, value.cond)
        ):
            assert isinstance(value.lhs, BlockArgument)
            return Selection(view, value.lhs.index, value.cond, kept, position)
    return None


def _is_input(view: StructuredOp, value: SSAValue) -> bool:
    return isinstance(value, BlockArgument) and value.owner is view.body and value.index < len(view.inputs)


def _counts(view: StructuredOp, value: SSAValue) -> bool:
    """Whether a scalar of the body depends on where in the loops it is, or on an element of another input."""
    behind = scalars_behind(view, value)
    others = sum(isinstance(v, BlockArgument) and v.owner is view.body and v.index < len(view.inputs) for v in behind)
    return others > 1 or any(isinstance(v.owner, linalg.ops.IndexOp) for v in behind)
