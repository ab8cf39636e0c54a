"""Collapsed loops: neighbouring axes that are contiguous in every tensor become one loop, so that vectors cross them.

x[i, j, k], y[i, j, k], bias[k]      (i, j) is one loop, k another: the bias does not have i and j
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.moves import Coordinate, affine_sources
from fuseline.analysis.structured import StructuredOp, is_generic, splat_value
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.dispatch.result_boxes import ResultBox
from fuseline.targets.cpu.families.nests.gathers import Gather, gathers
from fuseline.targets.cpu.families.nests.stages import Staging
from fuseline.targets.cpu.families.nests.traffic import elements, is_uninitialised


def collapse_loops(
    staging: Staging, grid: list[LoopRef], chunked: LoopRef | None, lanes: int
) -> tuple[list[list[LoopRef]], list[LoopRef]]:
    """The grid's axes, collapsed where they lie side by side in every tensor, and the collapsed loop that the chunked
    axis ends.

    A lane axis too short for a vector joins its neighbour where they are side by side in what is written: reads are
    then gathered.
    """
    written = list(_written(staging))
    everything = [*written, *_orders(staging)]
    collapsed: list[list[LoopRef]] = []
    for axis in [*grid, *([chunked] if chunked is not None else [])]:
        shapes = written if axis == chunked and _too_short(staging, axis, lanes) else everything
        if collapsed and all(_adjacent(order, collapsed[-1][-1], axis) for order in shapes):
            collapsed[-1].append(axis)
        else:
            collapsed.append([axis])
    if chunked is None:
        return collapsed, []
    if collapsed[-1][-1] != chunked:
        raise AssertionError("the chunked axis ends the last run")
    return collapsed[:-1], collapsed[-1]


def side_by_side_as_written(staging: Staging, run: Sequence[LoopRef], axis: LoopRef) -> bool:
    """Whether `axis` lies right behind a run of loops in everything that is written."""
    return all(_adjacent(order, run[-1], axis) for order in _written(staging))


def neighbours(staging: Staging, run: Sequence[LoopRef]) -> list[LoopRef]:
    """The axes that lie right before `run` in what is read along its last one."""
    orders = (order for order in _orders(staging) if order[-1:] == [run[-1]] and run[0] in order)
    before = (order[order.index(run[0]) - 1] for order in orders if order.index(run[0]) > 0)
    return [axis for axis in before if axis is not None]


def beside_last(runs: Iterable[list[LoopRef]], near: Sequence[LoopRef]) -> list[list[LoopRef]]:
    """Runs of a grid with those last that go along what lies near: workgroups that follow each other use what the same
    cache lines have."""
    return sorted(runs, key=lambda run: run[-1] in near)


def farthest_step(staging: Staging, run: Sequence[LoopRef]) -> float:
    """Elements between two steps along `run`, in the tensor where those are most."""
    orders = (order for order in (*_orders(staging), *_written(staging)) if run[-1] in order)
    after = ([axis for axis in order[order.index(run[-1]) + 1 :] if axis is not None] for order in orders)
    return max((elements(staging, axes) for axes in after), default=1.0)


def _orders(staging: Staging) -> list[list[LoopRef | None]]:
    """For every tensor that is read, the axes of its dimensions longer than 1 in memory order (None: read in another
    way)."""
    orders: list[list[LoopRef | None]] = []
    for op in staging.live:
        if is_generic(op):
            structured, loops = StructuredOp(op), staging.axes.of_op(op)
            for value, map_ in zip((*structured.inputs, *structured.outputs), structured.maps, strict=True):
                if splat_value(value) is None and not is_uninitialised(value):
                    orders.append(_order(staging, value, map_.results, loops))
            orders += [order for gather in gathers(op) for order in _gathered_orders(staging, gather, loops)]
        else:
            orders += _moved(staging, op)
    return orders


def _gathered_orders(staging: Staging, gather: Gather, loops: Sequence[LoopRef | None]) -> list[list[LoopRef | None]]:
    """The order of what is read, and of what each computed coordinate is computed of: where that is one loop, vectors
    that cross it would compute it per lane."""
    sizes = staging.view.shapes.dims(gather.source)
    read = [
        loops[loop] if loop is not None else None for loop, size in zip(gather.loops, sizes, strict=True) if size != 1
    ]
    computed = [[loops[loop] for loop in sorted(made)] for made in gather.computed]
    return [read, *([axis for axis in order if axis is not None] for order in computed if len(order) == 1)]


def _too_short(staging: Staging, axis: LoopRef, lanes: int) -> bool:
    extent = staging.axes.extents[axis]
    return isinstance(extent, int) and extent < lanes and all(stage.op is None for stage in staging.stages)


def _written(staging: Staging) -> list[list[LoopRef | None]]:
    """`_orders` of what the stages make."""
    orders: list[list[LoopRef | None]] = []
    for stage in staging.stages:
        for value in stage.values:
            orders.append([axis for axis in staging.axes.of_value(value) if axis is not None])
            orders += [
                [axis, None]
                for d in stage.destinations.get(value, ())
                if d.box.sliced
                for axis in _cut(staging, value, d.box)
            ]
    return orders


def _cut(staging: Staging, value: SSAValue, place: ResultBox) -> list[LoopRef]:
    """Axes behind which memory skips the rest of a larger tensor: those before one along which the value is a part of
    it."""
    axes, sizes = staging.axes.of_value(value), staging.view.shapes.dims(value)
    cut = [i for i, (size, whole) in enumerate(zip(sizes, place.dims, strict=True)) if size != whole]
    before = [[axis for axis in axes[:i] if axis is not None] for i in cut]
    return [moving[-1] for moving in before if moving]


def _moved(staging: Staging, op: Operation) -> list[list[LoopRef | None]]:
    """The orders of what a data-moving op reads and makes, in terms of its result's axes."""
    made = staging.axes.of_value(op.results[0])
    orders: list[list[LoopRef | None]] = [[axis for axis in made if axis is not None]]
    for one in affine_sources(op, staging.view.shapes) or ():
        orders.append(_order(staging, one.value, one.at, made))
        loops = [sorted(dims_of(expr)) for expr in one.at if expr is not None and not isinstance(expr, AffineDimExpr)]
        orders += [[made[loop] for loop in own] for own in loops if len(own) == 1]
    return orders


def _order(
    staging: Staging, value: SSAValue, at: Sequence[Coordinate], loops: Sequence[LoopRef | None]
) -> list[LoopRef | None]:
    order: list[LoopRef | None] = []
    for expr, size in zip(at, staging.view.shapes.dims(value), strict=True):
        if isinstance(expr, AffineDimExpr):
            if loops[expr.position] is not None:
                order.append(loops[expr.position])
        elif size != 1:
            order.append(None)
    return order


def _adjacent(order: Sequence[LoopRef | None], first: LoopRef, second: LoopRef) -> bool:
    if first not in order and second not in order:
        return True
    if first not in order or second not in order:
        return False
    return order.index(first) + 1 == order.index(second)
