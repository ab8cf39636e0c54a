"""The schedule of a dispatch's stages: which axes form the grid, which one runs across the lanes, and which stages
share loops.

grid over axes that every stage has          one workgroup: one point of the grid, times a chunk of the lane axis where
                                             that is parallel
    group of stages over equal inner axes    stages of a group are evaluated together, point by point
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from fuseline.analysis.column_blocks import shared_out
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.ir.costs import LINE_BYTES
from fuseline.ir.dim import Dim, ceil_div, mul, product, upper_bound
from fuseline.ir.rounds import rounds
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.nests.ahead import values_ahead
from fuseline.targets.cpu.families.nests.collapsed_loops import collapse_loops, side_by_side_as_written
from fuseline.targets.cpu.families.nests.evaluations import MOST_OPERATIONS, operations_per_point
from fuseline.targets.cpu.families.nests.grid import (
    given_grid,
    out_of_grid,
    out_of_rows,
    scratch_elements,
    unaffordable,
)
from fuseline.targets.cpu.families.nests.grouped_columns import GroupedColumns
from fuseline.targets.cpu.families.nests.groups import Group, choose_lanes, groups_of, widths_of
from fuseline.targets.cpu.families.nests.moved_rows import moved_rows
from fuseline.targets.cpu.families.nests.recompute_cost import cost
from fuseline.targets.cpu.families.nests.stages import SCRATCH_LIMIT_BYTES, Staging
from fuseline.targets.cpu.families.nests.tiling import (
    interleaved_channels,
    rest_of_grid,
    short_run,
    tile_rows,
    tiled_loops,
    transposed_tile_loops,
)
from fuseline.targets.cpu.families.nests.traffic import contiguous_traffic, elements
from fuseline.targets.cpu.families.nests.turned_stores import turned_axis
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES

MOST_COLUMNS = 4096
"""Columns that a workgroup takes of groups: values per column lie in scratch."""

MOST_SQUARE = 16
"""Elements of a side of a square, at most, where a vector has more: those take that many registers."""

LEAST_BITS = 32
"""Of neighbours that are loaded as one: less are gathered as fast (2 and 3 bytes: .24 and .21 ns each, .34 and .82 in
tiles; 4 to 7 of all types: .3 to 1 of the time in tiles)."""

WORKGROUP_WORK = 32 * 1024
"""Operations a workgroup should have at the least, so that claiming it costs nothing beside."""


@dataclass(eq=False)
class Schedule:
    """Everything that emission needs.

    `collapsed_loops` are the grid's axes, outermost first, each a run of adjacent axes that are traversed as one;
    `chunked` is the lane axis when it is cut into chunks of `chunk`, `vector_loops` the axes that it stands for (itself
    last). `tiled_loops` is a run traversed in blocks of `tile` rows; `transposed`: values are made with lanes along it
    and transposed before they are written; `moved`: each row is the whole lane axis. `interleaved`: the
    extent of a short last axis of `vector_loops` along which vectors made along the axis before are interleaved (0:
    none).
    `ahead` is made once, before the grid. `grouped`: `vector_loops` are groups and the columns of each; chunks are of
    whole groups.
    """

    staging: Staging
    collapsed_loops: list[list[LoopRef]]
    chunked: LoopRef | None
    chunk: int
    vector_loops: list[LoopRef]
    groups: list[Group]
    tiled_loops: list[LoopRef] = field(default_factory=list[LoopRef])
    tile: int = 1
    transposed: bool = False
    moved: bool = False
    interleaved: int = 0
    ahead: list[Group] = field(default_factory=list[Group])
    grouped: bool = False

    @property
    def tiles(self) -> Dim:
        """How many rows of tiles the tiled run has."""
        return ceil_div(product(self.staging.axes.extents[axis] for axis in self.tiled_loops), self.tile)

    @property
    def lane_extent(self) -> Dim:
        """The extent of the chunked axis (all of its run)."""
        return product(self.staging.axes.extents[axis] for axis in self.vector_loops)

    @property
    def chunks(self) -> Dim:
        """How many chunks the lane axis has."""
        return 1 if self.chunked is None else ceil_div(self.lane_extent, self.chunk)

    @property
    def workgroups(self) -> Dim:
        """The size of the grid."""
        return mul(
            product(self.staging.axes.extents[axis] for run in self.collapsed_loops for axis in run),
            mul(self.tiles, self.chunks),
        )


def build_schedule(staging: Staging, machine: Machine, threads: int = 1) -> Schedule:
    """The schedule for `staging`, which may be told to store less on the way, for so many threads."""
    grid, given_up = _settled_grid(staging, threads, machine.f32_lanes)
    if staging.grouped is not None and staging.grouped.group in grid:
        return _grouped_schedule(staging, staging.grouped, grid, machine, threads)
    weights = contiguous_traffic(staging)
    lane = _lane(staging, weights)
    chunked = lane if lane in grid else None
    if chunked is not None:
        grid = [axis for axis in grid if axis != chunked]
    staging.make_ahead(values_ahead(staging, lane, threads, given_up))
    runs, vector_loops = collapse_loops(staging, grid, chunked, machine.f32_lanes)
    groups = groups_of(staging, {axis for run in runs for axis in run} | set(vector_loops[:-1]))
    schedule = Schedule(staging, runs, chunked, 1, vector_loops, groups)
    schedule.ahead = [Group(stage.parallel, [stage]) for stage in staging.ahead]
    for group in (*schedule.ahead, *groups):
        choose_lanes(staging, group, weights, lane, machine)
    _choose_tiles(schedule, machine)
    _turn_stores(schedule)
    schedule.chunk = _chunk(schedule, machine, threads)
    return schedule


def _grouped_schedule(
    staging: Staging, grouped: GroupedColumns, grid: Sequence[LoopRef], machine: Machine, threads: int
) -> Schedule:
    """The schedule with lanes along groups and their columns together."""
    outer = [axis for axis in grid if axis != grouped.group]
    runs, _ = collapse_loops(staging, outer, None, machine.f32_lanes)
    run, groups = [grouped.group, grouped.column], groups_of(staging, set(outer))
    schedule = Schedule(staging, runs, grouped.column, 1, run, groups, grouped=True)
    weights = contiguous_traffic(staging)
    for group in groups:
        choose_lanes(staging, group, weights, grouped.column, machine)
    _turn_stores(schedule)
    schedule.chunk = _grouped_chunk(schedule, machine, threads)
    return schedule


def _grouped_chunk(schedule: Schedule, machine: Machine, threads: int) -> int:
    """How many columns a workgroup takes, in whole groups: all, up to what lies in scratch, or less where threads would
    have none."""
    columns, extent = (
        upper_bound(schedule.staging.axes.extents[schedule.vector_loops[-1]]),
        upper_bound(schedule.lane_extent),
    )
    assert columns is not None
    most = shared_out(MOST_COLUMNS, 1, columns, machine.f32_lanes)
    if extent is None:
        return most
    others = elements(schedule.staging, [axis for run in schedule.collapsed_loops for axis in run])
    wanted = -(-threads // int(others))
    narrow = shared_out(extent, wanted, columns, machine.f32_lanes)
    worth = max(1.0, _work_per_lane_point(schedule)) * narrow > WORKGROUP_WORK
    return min(extent, most, narrow if worth else extent)


def _lane(staging: Staging, weights: Mapping[LoopRef, float]) -> LoopRef | None:
    """The loop that most elements lie along; one of a stage, where most lie along loops of values that are computed
    where parts of them are read, and lanes do not make too much code of that."""
    lane = max(weights, key=lambda axis: weights[axis], default=None)
    run = {axis for stage in staging.stages for axis in (*stage.parallel, *stage.reduction)}
    if lane in run or operations_per_point(staging) > MOST_OPERATIONS:
        return lane
    return max((axis for axis in weights if axis in run), key=lambda axis: weights[axis], default=None)


def _settled_grid(staging: Staging, threads: int, lanes: int) -> tuple[list[LoopRef], set[SSAValue]]:
    """The grid, after everything that would cost axes of it, or more scratch than there is, has given way, and what
    has: each round stores one value less."""
    grid, given_up = given_grid(staging), set[SSAValue]()
    for _ in rounds("the grid of a schedule", most=len(staging.stored)):
        lost = out_of_grid(staging, grid) or unaffordable(staging, grid)
        lost = lost or out_of_rows(staging, grid, threads, lanes)
        if lost is None:
            break
        staging.unstore(lost)
        if isinstance(lost.owner, Operation) and staging.saves_work(lost.owner, lost):
            given_up.add(lost)
        grid = given_grid(staging)
    return grid, given_up


def _choose_tiles(schedule: Schedule, machine: Machine) -> None:
    """Traverse a run of the grid in square tiles with the lanes, where an operand lies across them and nothing is
    reduced."""
    groups = schedule.groups
    if schedule.chunked is None or len(groups) != 1 or any(stage.op is not None for stage in groups[0].stages):
        return
    if groups[0].lane_axis != schedule.chunked or _moves_rows(schedule, machine):
        return
    lanes = min(groups[0].lanes, MOST_SQUARE)
    run = transposed_tile_loops(schedule.staging, schedule.collapsed_loops, schedule.vector_loops, lanes)
    schedule.transposed = bool(run)
    least = max(2, -(-LEAST_BITS // min(widths_of(schedule.staging, groups[0]))))
    run = run or tiled_loops(schedule.staging, schedule.collapsed_loops, schedule.vector_loops, lanes, least)
    if run:
        schedule.tiled_loops, schedule.tile, groups[0].lanes = run, tile_rows(schedule.staging, run, lanes), lanes
        schedule.collapsed_loops = rest_of_grid(schedule.staging, schedule.collapsed_loops, run, lanes)
    else:
        _interleave(schedule)


def _interleave(schedule: Schedule) -> None:
    """Interleave vectors along a short last axis, which joins the one before if it has not."""
    lanes, run, others = schedule.groups[0].lanes, schedule.vector_loops, schedule.collapsed_loops
    joins = len(run) == 1 and others and short_run(schedule.staging, run, lanes)
    if joins and side_by_side_as_written(schedule.staging, others[-1], run[0]):
        *others, before = others
        run = [*before, *run]
    channels, lanes = interleaved_channels(schedule.staging, run, lanes)
    if channels:
        schedule.vector_loops, schedule.collapsed_loops = run, others
        schedule.interleaved, schedule.groups[0].lanes = channels, lanes


def _moves_rows(schedule: Schedule, machine: Machine) -> bool:
    """Have rows that are moved be what lanes go along, in tiles, where there are such."""
    group = schedule.groups[0]
    vector = group.lanes, max(widths_of(schedule.staging, group))
    moved = moved_rows(schedule.staging, schedule.collapsed_loops, schedule.vector_loops, vector, machine)
    if moved is None:
        return False
    schedule.collapsed_loops, schedule.tiled_loops, schedule.tile = moved.rest, moved.run, moved.tile
    schedule.vector_loops, group.lanes, schedule.moved = moved.row, moved.lanes, True
    return True


def _turn_stores(schedule: Schedule) -> None:
    """Have groups that write across their lanes write squares, where the grid has none."""
    if not schedule.tiled_loops and not schedule.interleaved:
        for group in schedule.groups:
            group.turned = turned_axis(schedule.staging, group, schedule.vector_loops)


def _chunk(schedule: Schedule, machine: Machine, threads: int) -> int:
    """How much of the chunked axis a workgroup takes: all of it where the rest of the grid is large or the work is
    little; down to cache lines where threads would have none."""
    if schedule.chunked is None:
        return 1
    extent = upper_bound(schedule.lane_extent)
    lanes = max((group.lanes for group in schedule.groups), default=machine.f32_lanes)
    others = elements(schedule.staging, [axis for run in schedule.collapsed_loops for axis in run])
    work = max(1.0, _work_per_lane_point(schedule)) * schedule.tile
    step = 8 * lanes * max(1, schedule.interleaved)
    wanted = max(step, int(WORKGROUP_WORK / work) // step * step)
    if extent is not None and others < threads and work * extent * others > WORKGROUP_WORK:
        wanted = min(wanted, _shared(extent, -(-threads // int(others)), max(1, schedule.interleaved)))
    most = _most_kept(schedule, step)
    if extent is not None and extent <= most and (extent <= wanted or (others >= 64 and extent <= 4096)):
        return extent
    return min(wanted, most)


def _most_kept(schedule: Schedule, step: int) -> int:
    """Of how many points of the chunked axis what lies in scratch still fits, in whole steps; one step at the least."""
    staging = schedule.staging
    grid = [axis for run in (*schedule.collapsed_loops, schedule.vector_loops) for axis in run]
    lying = [
        scratch_elements(staging, value, grid) * BYTES[dtype_of(value.type)]
        for stage in staging.stages
        for value in stage.values
        if value in staging.stored and not stage.destinations.get(value) and value not in staging.hosts
        if not set(schedule.vector_loops).isdisjoint(staging.axes.of_value(value))
    ]
    return max(step, SCRATCH_LIMIT_BYTES // max([1, *lying]) // step * step)


def _shared(extent: int, chunks: int, together: int) -> int:
    """A part of so many of an axis, or of as many as it has cache lines of f32, in whole ones."""
    line = LINE_BYTES // 4 * together
    return -(-extent // (max(1, min(chunks, extent // line)) * line)) * line


def _work_per_lane_point(schedule: Schedule) -> float:
    staging = schedule.staging
    results = set(staging.destinations)
    total = 0.0
    for group in schedule.groups:
        for stage in group.stages:
            inner = [axis for axis in (*group.inner, *stage.reduction) if axis != schedule.chunked]
            owner = stage.values[0].owner
            per_point = cost(owner, staging.live, results) if isinstance(owner, Operation) else 1
            total += elements(staging, inner) * per_point
    return total
