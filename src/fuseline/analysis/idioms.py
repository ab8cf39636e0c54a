"""Which idiom a reduction is: the one place that says so. Fusion keeps the answer on its nodes, a dispatch on its view.

An idiom is written as a reduction over all pairs of two loops, or with a result beside the value, and made in one walk
(`walks.py` has the forms). A body that differs in one respect is computed as it is written, which may take the square
of the time: `near_idiom` says in which.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import BlockArgument, Operation, SSAValue

from fuseline.analysis.ranks import Rank, rank_of
from fuseline.analysis.structured import StructuredOp, splat_value, yielded
from fuseline.analysis.walks import (
    ORDERS,
    Scan,
    Scatter,
    Selection,
    loop_of,
    loops_behind,
    scalars_behind,
    scan_of,
    scatter_of,
    selection_of,
)
from fuseline.ir.dim import Dim
from fuseline.ir.fast.direct import ops_of

Idiom: TypeAlias = Scan | Scatter | Rank | Selection

_NAMES: dict[type[Idiom], str] = {Scan: "scan", Scatter: "scatter", Rank: "rank", Selection: "selection"}

_EQUAL = 0


@dataclass(frozen=True, slots=True)
class NearIdiom:
    """A reduction that is all but an idiom: which one, and what is missing."""

    name: str
    missing: str


def name_of(idiom: Idiom) -> str:
    """The name of an idiom, as records have it."""
    return _NAMES[type(idiom)]


def idiom_of(view: StructuredOp, extents: Sequence[Dim]) -> Idiom | None:
    """The idiom that a structured op with loops of these `extents` is, None for any other op."""
    if len(view.reduction) != 1 or not counted_loops(view):
        return None
    if len(view.op.results) == 1:
        return scatter_of(view) or rank_of(view) or scan_of(view, extents)
    return selection_of(view)


def counted_loops(view: StructuredOp) -> set[int]:
    """The loops whose counters the body asks for: every idiom asks for some."""
    return {op.dim.value.data for op in ops_of(view.body) if type(op) is linalg.ops.IndexOp}


def near_idiom(view: StructuredOp, extents: Sequence[Dim]) -> NearIdiom | None:
    """The idiom that a reduction nearly is, None for an idiom and for whatever is far from one.

    A masked reduction, whose elements vary with both of the loops that are compared, is far from a scan.
    """
    if not view.reduction or not counted_loops(view) or idiom_of(view, extents) is not None:
        return None
    return next(_near(view, extents), None)


def _near(view: StructuredOp, extents: Sequence[Dim]) -> Iterator[NearIdiom]:
    for select in [op for op in ops_of(view.body) if isinstance(op, arith.SelectOp)]:
        condition = select.cond.owner
        if not isinstance(condition, arith.CmpiOp):
            continue
        if _compares_elements(select):
            yield NearIdiom("rank", _missing_of_rank(view, select))
        elif _orders_loops(view, condition) and not _varies(view, select.lhs, condition):
            yield NearIdiom("scan", _missing_of_scan(view, select, extents))
        elif (loop := _hit_loop(view, condition)) is not None:
            yield NearIdiom("scatter", _missing_of_scatter(view, select, loop))
    if any(_keeps_a_position(view, i) for i in range(len(view.op.results))):
        yield NearIdiom("selection", _missing_of_selection(view))


def _shape(view: StructuredOp, results: int) -> str:
    """What is wrong with the number of results and reduction loops, empty where nothing is."""
    if len(view.op.results) != results:
        return f"it has {len(view.op.results)} results, not {results}"
    return f"it reduces over {len(view.reduction)} loops, not one" if len(view.reduction) != 1 else ""


# scans ---------------------------------------------------------------------------------------------------------------


def _orders_loops(view: StructuredOp, condition: arith.CmpiOp) -> bool:
    """Whether a loop of the result is compared with one that is reduced, by order."""
    return condition.predicate.value.data in ORDERS and _compared_loops(view, condition) is not None


def _compared_loops(view: StructuredOp, condition: object) -> tuple[int, int] | None:
    """The loop of the result and the reduced loop that are compared."""
    if isinstance(condition, arith.CmpiOp):
        first, second = loop_of(condition.lhs), loop_of(condition.rhs)
        for kept, reduced in ((first, second), (second, first)):
            if kept is not None and reduced is not None and kept in view.parallel and reduced in view.reduction:
                return kept, reduced
    return None


def _varies(view: StructuredOp, element: SSAValue, condition: arith.CmpiOp) -> bool:
    compared = _compared_loops(view, condition)
    return compared is not None and compared[0] in loops_behind(view, element)


def _missing_of_scan(view: StructuredOp, select: arith.SelectOp, extents: Sequence[Dim]) -> str:
    compared = _compared_loops(view, select.cond.owner)
    assert compared is not None
    if splat_value(select.rhs) is None:
        return "what does not count is no constant"
    if extents[compared[0]] != extents[compared[1]]:
        return "the two loops that are compared differ in length"
    return _shape(view, 1) or _USED


_USED = "the running result is used or changed by more than the one op that adds to it"


# scatters ------------------------------------------------------------------------------------------------------------


def _hit_loop(view: StructuredOp, condition: arith.CmpiOp) -> int | None:
    """The loop of the result that is compared, for equality, with a place that a reduced loop moves."""
    if condition.predicate.value.data != _EQUAL:
        return None
    for index, position in ((condition.lhs, condition.rhs), (condition.rhs, condition.lhs)):
        loop, behind = loop_of(index), loops_behind(view, position)
        moves = bool(behind.intersection(view.reduction)) and loop not in behind and loop_of(position) is None
        if moves and loop in view.parallel:
            return loop
    return None


def _missing_of_scatter(view: StructuredOp, select: arith.SelectOp, loop: int) -> str:
    if loop in loops_behind(view, select.lhs):
        return "the element varies with the loop that it is placed along"
    if splat_value(select.rhs) is None and select.rhs not in view.body.args[view.input_count :]:
        return "what does not hit a place is no constant"
    return _shape(view, 1) or _USED


# ranks ---------------------------------------------------------------------------------------------------------------


def _compares_elements(select: arith.SelectOp) -> bool:
    """Whether both of what is chosen between are comparisons."""
    comparisons = (arith.CmpiOp, arith.CmpfOp)
    return isinstance(select.lhs.owner, comparisons) and isinstance(select.rhs.owner, comparisons)


def _missing_of_rank(view: StructuredOp, select: arith.SelectOp) -> str:
    sides = [value for op in (select.lhs.owner, select.rhs.owner) if isinstance(op, Operation) for value in op.operands]
    if not all(isinstance(value.type, IntegerType) for value in sides):
        return "the elements are no integers"
    if len(view.inputs) != 2 or view.inputs[0] is not view.inputs[1]:
        return "what is compared is not one tensor with itself"
    return _shape(view, 1) or "it does not count what is less, or equal and before"


# selections ----------------------------------------------------------------------------------------------------------


def _keeps_a_position(view: StructuredOp, result: int) -> bool:
    """Whether a result is the counter of a reduced loop where something held, else what it was."""
    select = yielded(view.op)[result].owner
    kept = isinstance(select, arith.SelectOp) and select.rhs is view.body.args[view.input_count + result]
    return isinstance(select, arith.SelectOp) and kept and loop_of(select.lhs) in view.reduction


def _missing_of_selection(view: StructuredOp) -> str:
    wrong = _shape(view, 2)
    if wrong:
        return wrong
    position = next(i for i in (0, 1) if _keeps_a_position(view, i))
    value, where = (yielded(view.op)[i].owner for i in (1 - position, position))
    assert isinstance(where, arith.SelectOp)
    if not isinstance(value, arith.SelectOp) or value.cond is not where.cond:
        return "the element and its place do not change together"
    if view.body.args[view.input_count + position] in scalars_behind(view, where.cond):
        return "what replaces the element kept depends on where that stood"
    if not isinstance(value.lhs, BlockArgument) or value.lhs.index >= view.input_count:
        return "what is kept is computed, and no element of an input"
    return "what replaces the element kept depends on more than the two"
