"""The grid of a schedule, and which values are not stored for its sake."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import OpResult, SSAValue

from fuseline.analysis.picked_rows import enough_rows
from fuseline.analysis.structured import is_reduction
from fuseline.dispatch.fused_loops import Role
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import upper_bound
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.nests.stages import SCRATCH_LIMIT_BYTES, Staging
from fuseline.targets.cpu.kernel_ir.types import BYTES


def given_grid(staging: Staging) -> list[LoopRef]:
    """The grid of the dispatch; with what members share besides, where the scratch beside it holds no rows of a
    reduction, that would be made again at every read."""
    grid = _grid(staging)
    lost = unaffordable(staging, grid)
    if lost is None or not isinstance(lost, OpResult) or not is_reduction(lost.op):
        return grid
    wide = _grid(staging, wide=True)
    return wide if unaffordable(staging, wide) is not lost else grid


def _grid(staging: Staging, *, wide: bool = False) -> list[LoopRef]:
    """The grid of the dispatch, in the order of the largest result, as far as all stages that are needed have it, and
    rows that elements are picked from. A result that is an argument is made by no member: where there are no others,
    its dimensions are the grid. `wide`: with the loops that members share although the dispatch keeps them inside."""
    picked = staging.picked
    needed = [
        stage
        for stage in staging.stages
        if stage.op is not None or any(stage.destinations.values()) or stage.values[0] in picked
    ]
    main = max(needed, key=lambda stage: len(stage.parallel)).parallel if needed else []
    placed = any(member.role is Role.PLACED for member in staging.view.loops.members)
    loose = _read_elsewhere(staging) if wide else set[LoopRef | None]()
    given = [axis for axis in main if axis in staging.axes.grid or (wide and axis not in loose)] if placed else main
    return [axis for axis in given if all(axis in stage.parallel for stage in needed)]


def _read_elsewhere(staging: Staging) -> set[LoopRef | None]:
    """The loops along which what is stored is read at other points than the reader's."""
    stored = [value for value in staging.loose if value in staging.stored]
    dimensions = [(staging.axes.of_value(value), staging.loose[value]) for value in stored]
    return {axes[i] for axes, found in dimensions for i in found}


def out_of_grid(staging: Staging, grid: Sequence[LoopRef]) -> SSAValue | None:
    """A value stored only to save work that would cost axes of the grid."""
    for stage in staging.stages:
        if stage.op is None and not any(stage.destinations.values()):
            (value,) = stage.values
            axes = staging.axes.of_value(value)
            if not set(grid).issubset(stage.parallel) or any(axes[i] in grid for i in staging.loose.get(value, ())):
                return value
    return None


def out_of_rows(staging: Staging, grid: Sequence[LoopRef], threads: int, lanes: int) -> SSAValue | None:
    """A value that is no result and of which rows are kept, where there are too few of them for the threads, or lanes
    would run across."""
    picked = [value for value in staging.picked if not staging.destinations.get(value)]
    results = {_lane(staging, value, grid, lanes) for value, places in staging.destinations.items() if places}
    if not enough_rows([staging.axes.extents[axis] for axis in grid if axis not in results], threads):
        return next(iter(picked), None)
    return next((value for value in picked if {_lane(staging, value, grid, lanes)} != results), None)


def _lane(staging: Staging, value: SSAValue, grid: Sequence[LoopRef], lanes: int) -> LoopRef | None:
    """The grid's axis that a value lies innermost along; None for one inside a workgroup, or that fills no vector."""
    *_, last = [None, *(axis for axis in staging.axes.of_value(value) if axis is not None)]
    if last is None or last not in grid or assumed_size(staging.axes.extents[last]) < lanes:
        return None
    return last


def unaffordable(staging: Staging, grid: Sequence[LoopRef]) -> SSAValue | None:
    """A stored value that is no result and needs too much scratch beside this grid.

    A reduction makes all its results together; those that are not stored, or that nobody reads, take no room.
    """
    for stage in staging.stages:
        for value in stage.values:
            if stage.destinations.get(value) or value in staging.hosts or value not in staging.stored:
                continue
            if scratch_elements(staging, value, grid) * BYTES[dtype_of(value.type)] > SCRATCH_LIMIT_BYTES:
                return value
    return None


def scratch_elements(staging: Staging, value: SSAValue, grid: Sequence[LoopRef]) -> int:
    """Elements of `value` that one workgroup holds; a large number where a size is unbounded."""
    total = 1
    for axis, size in zip(staging.axes.of_value(value), staging.view.shapes.dims(value), strict=True):
        if axis is not None and axis not in grid:
            total *= upper_bound(size) or 1 << 40
    return total
