"""The schedule of a dispatch's stages: which axes form the grid, which one runs across the lanes, and which stages share loops.

grid over axes that every stage has          one workgroup: one point of the grid, times a chunk of the lane axis where that is parallel
    group of stages over equal inner axes    stages of a group are evaluated together, point by point
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.result_places import Place
from fuseline.analysis.structured import StructuredOp, is_generic, splat_value
from fuseline.ir.dim import Dim, ceil_div, mul, product, upper_bound
from fuseline.targets.cpu.access import dtype_of
from fuseline.targets.cpu.families.combining import combiners
from fuseline.targets.cpu.families.gathers import Gather, gathers
from fuseline.targets.cpu.families.interleaving import interleaved_channels
from fuseline.targets.cpu.families.iteration import Node, contiguous_axis, is_internal, plain_pairs
from fuseline.targets.cpu.families.stages import SCRATCH_LIMIT_BYTES, Stage, Staging, cost, element_types
from fuseline.targets.cpu.families.tiling import TILES_PER_WORKGROUP, crossed_run, tile_run
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BITS, BYTES

WORKGROUP_WORK = 32 * 1024
"""Operations a workgroup should have at the least, so that claiming it costs nothing beside."""

UNKNOWN_SIZE = 256
"""What a size without an upper bound is taken for when work is estimated."""


@dataclass(eq=False)
class Group:
    """Stages that share the loops over `inner`; `together` are those of them that reduce over exactly these loops."""

    inner: list[Node]
    stages: list[Stage]
    together: list[Stage] = field(default_factory=list[Stage])
    lane_axis: Node | None = None
    lane_reduction: Node | None = None
    lanes: int = 1


@dataclass(eq=False)
class Schedule:
    """Everything that emission needs.

    `runs` are the grid's axes, outermost first, each a run of adjacent axes that are walked as one; `chunked` is the lane axis when it is cut
    into chunks of `chunk`, `lane_run` the axes that it stands for (itself last). `tile_run` is a run walked in blocks of `tile` rows;
    `crossed`: values are made with lanes along it and transposed before they are written. `interleaved`: the extent of a short last axis of
    `lane_run` along which vectors made along the axis before are interleaved (0: none).
    """

    staging: Staging
    runs: list[list[Node]]
    chunked: Node | None
    chunk: int
    lane_run: list[Node]
    groups: list[Group]
    tile_run: list[Node] = field(default_factory=list[Node])
    tile: int = 1
    crossed: bool = False
    interleaved: int = 0

    @property
    def tiles(self) -> Dim:
        """How many rows of tiles the tiled run has."""
        return ceil_div(product(self.staging.axes.extents[axis] for axis in self.tile_run), self.tile)

    @property
    def lane_extent(self) -> Dim:
        """The extent of the chunked axis (all of its run)."""
        return product(self.staging.axes.extents[axis] for axis in self.lane_run)

    @property
    def chunks(self) -> Dim:
        """How many chunks the lane axis has."""
        return 1 if self.chunked is None else ceil_div(self.lane_extent, self.chunk)

    @property
    def workgroups(self) -> Dim:
        """The size of the grid."""
        return mul(product(self.staging.axes.extents[axis] for run in self.runs for axis in run), mul(self.tiles, self.chunks))


def build_schedule(staging: Staging, machine: Machine) -> Schedule:
    """The schedule for `staging`, which may be told to store less on the way."""
    while True:
        grid = _grid(staging)
        lost = _out_of_grid(staging) or _unaffordable(staging, grid)
        if lost is None:
            break
        staging.unstore(lost)
    weights = _weights(staging)
    lane = _lane_axis(staging, weights, grid)
    chunked = lane if lane in grid else None
    if chunked is not None:
        grid = [axis for axis in grid if axis != chunked]
    runs, lane_run = _fused(staging, grid, chunked, machine.f32_lanes)
    groups = _groups(staging, {axis for run in runs for axis in run} | set(lane_run[:-1]))
    schedule = Schedule(staging, runs, chunked, 1, lane_run, groups)
    for group in groups:
        _choose_lanes(staging, group, weights, lane, machine)
    _choose_tiles(schedule)
    schedule.chunk = _chunk(schedule, machine)
    return schedule


def _choose_tiles(schedule: Schedule) -> None:
    """Walk a run of the grid in square tiles with the lanes, where an operand lies across them and nothing is reduced."""
    groups = schedule.groups
    if schedule.chunked is None or len(groups) != 1 or any(stage.op is not None for stage in groups[0].stages):
        return
    if groups[0].lane_axis != schedule.chunked:
        return
    run = crossed_run(schedule.staging, schedule.runs, schedule.lane_run, groups[0].lanes)
    schedule.crossed = bool(run)
    run = run or tile_run(schedule.staging, schedule.runs, schedule.lane_run, groups[0].lanes)
    if run:
        schedule.runs = [other for other in schedule.runs if other is not run]
        schedule.tile_run, schedule.tile = run, TILES_PER_WORKGROUP * groups[0].lanes
    else:
        schedule.interleaved = interleaved_channels(schedule.staging, schedule.lane_run, groups[0].lanes)


# the grid ------------------------------------------------------------------------------------------------------------------------------


def _grid(staging: Staging, stages: Sequence[Stage] | None = None) -> list[Node]:
    """The axes that every stage has, once each, that nothing reduces and nobody reads out of step; in the order of the largest result."""
    stages = staging.stages if stages is None else stages
    forbidden = _forbidden(staging, {value for stage in stages for value in stage.values})
    for stage in stages:
        forbidden.update(axis for axis in stage.parallel if stage.parallel.count(axis) > 1)
    main = max(stages, key=lambda stage: len(stage.parallel), default=None)
    if main is None:
        return []
    return [axis for axis in main.parallel if axis not in forbidden and all(axis in stage.parallel for stage in stages)]


def _out_of_grid(staging: Staging) -> SSAValue | None:
    """A value stored only to save work that would cost axes of the grid."""
    needed = [stage for stage in staging.stages if stage.op is not None or any(stage.destinations.values())]
    grid = set(_grid(staging, needed))
    for stage in staging.stages:
        if stage not in needed:
            (value,) = stage.values
            axes = staging.axes.of_value(value)
            loose = {axes[i] for i in staging.loose.get(value, ())}
            if not grid.issubset(stage.parallel) or loose & grid:
                return value
    return None


def _forbidden(staging: Staging, stored: set[SSAValue]) -> set[Node]:
    found: set[Node] = set()
    for op in staging.live:
        if is_generic(op):
            loops = [axis for axis in staging.axes.of_op(op) if axis is not None]
            found.update(axis for axis in loops if loops.count(axis) > 1)
            found.update(axis for i in StructuredOp(op).reduction if (axis := staging.axes.of_op(op)[i]) is not None)
    for value in stored:
        if is_internal(value):
            axes = staging.axes.of_value(value)
            found.update(axis for i in staging.loose.get(value, ()) if (axis := axes[i]) is not None)
    return found


def _unaffordable(staging: Staging, grid: Sequence[Node]) -> SSAValue | None:
    """A stored value that is no result and needs too much scratch beside this grid."""
    for stage in staging.stages:
        for value in stage.values:
            if stage.destinations.get(value) or value in staging.hosts:
                continue
            if scratch_elements(staging, value, grid) * BYTES[dtype_of(value.type)] > SCRATCH_LIMIT_BYTES:
                return value
    return None


def scratch_elements(staging: Staging, value: SSAValue, grid: Sequence[Node]) -> int:
    """Elements of `value` that one workgroup holds; a large number where a size is unbounded."""
    total = 1
    for axis, size in zip(staging.axes.of_value(value), staging.view.shapes.dims(value), strict=True):
        if axis is not None and axis not in grid:
            total *= upper_bound(size) or 1 << 40
    return total


# the axis across the lanes -------------------------------------------------------------------------------------------------------------


def _count(dim: Dim) -> int:
    return upper_bound(dim) or UNKNOWN_SIZE


def _weights(staging: Staging) -> dict[Node, float]:
    """Per axis, how many elements are read or written with that axis contiguous in memory."""
    weights: dict[Node, float] = {}

    def vote(axis: Node | None, elements: float) -> None:
        if axis is not None:
            weights[axis] = weights.get(axis, 0.0) + elements

    for op in staging.live:
        if is_generic(op):
            structured, loops = StructuredOp(op), staging.axes.of_op(op)
            for value, map_ in zip((*structured.inputs, *structured.outputs), structured.maps, strict=True):
                if splat_value(value) is None and not _uninitialised(value) and _in_memory(staging, value):
                    vote(contiguous_axis(staging.view, value, map_, loops), _volume(staging, map_, loops))
    for stage in staging.stages:
        for value in stage.values:
            axes = [axis for axis in staging.axes.of_value(value) if axis is not None]
            vote(axes[-1] if axes else None, 1.1 * _elements(staging, axes))
    return weights


def _in_memory(staging: Staging, value: SSAValue) -> bool:
    """Whether reading a value is reading memory: an argument, what a stage stores, or a box of either with steps of 1."""
    while isinstance(value, OpResult) and isinstance(value.op, tensor.ExtractSliceOp) and value not in staging.stored:
        if any(step != 1 for step in value.op.static_strides.get_values()):
            return False
        value = value.op.source
    return not is_internal(value) or value in staging.stored


def _uninitialised(value: SSAValue) -> bool:
    return isinstance(value.owner, tensor.EmptyOp)


def _volume(staging: Staging, map_: AffineMap, loops: Sequence[Node | None]) -> float:
    used = {loops[d] for d in map_.used_dims()}
    return _elements(staging, [axis for axis in used if axis is not None])


def _elements(staging: Staging, axes: Sequence[Node]) -> float:
    total = 1.0
    for axis in axes:
        total *= _count(staging.axes.extents[axis])
    return total


def _lane_axis(staging: Staging, weights: dict[Node, float], grid: Sequence[Node]) -> Node | None:
    """The axis with the most contiguous traffic; one of few elements gives way to a long one of the grid."""
    del grid, staging
    return max(weights, key=lambda axis: weights[axis], default=None)


def _choose_lanes(staging: Staging, group: Group, weights: dict[Node, float], lane: Node | None, machine: Machine) -> None:
    best = max(group.inner, key=lambda axis: weights.get(axis, 0.0), default=None)
    axis = lane if lane in group.inner else best
    reductions = [a for stage in group.stages if stage not in group.together for a in stage.reduction]
    across = max(reductions, key=lambda a: weights.get(a, 0.0), default=None)
    group.lanes = _lanes(staging, group, machine)
    if across is not None and weights.get(across, 0.0) > (weights.get(axis, 0.0) if axis is not None else -1.0):
        group.lane_reduction = across
        axis = None
    group.lane_axis = axis


def _lanes(staging: Staging, group: Group, machine: Machine) -> int:
    """Lanes that fill a register of the group's common element type."""
    types = {t for stage in group.stages for t in element_types(staging, stage)} - {"i1"}
    widths = {BITS[t] for t in types} or {8}
    for width, dtype in ((32, "f32"), (64, "f64"), (16, "i16")):
        if width in widths:
            return machine.lanes(dtype)
    return machine.lanes("i8")


def _chunk(schedule: Schedule, machine: Machine) -> int:
    """How much of the chunked axis a workgroup takes: all of it where the rest of the grid is large or the work is little."""
    if schedule.chunked is None:
        return 1
    extent = upper_bound(schedule.lane_extent)
    lanes = max((group.lanes for group in schedule.groups), default=machine.f32_lanes)
    others = _elements(schedule.staging, [axis for run in schedule.runs for axis in run])
    work = max(1.0, _work_per_lane_point(schedule)) * schedule.tile
    step = 8 * lanes * max(1, schedule.interleaved)
    wanted = max(step, int(WORKGROUP_WORK / work) // step * step)
    if extent is not None and (extent <= wanted or (others >= 64 and extent <= 4096)):
        return max(1, extent)
    return wanted


def _work_per_lane_point(schedule: Schedule) -> float:
    staging = schedule.staging
    results = set(staging.destinations)
    total = 0.0
    for group in schedule.groups:
        for stage in group.stages:
            inner = [axis for axis in (*group.inner, *stage.reduction) if axis != schedule.chunked]
            owner = stage.values[0].owner
            per_point = cost(owner, staging.live, results) if isinstance(owner, Operation) else 1
            total += _elements(staging, inner) * per_point
    return total


# runs of axes ----------------------------------------------------------------------------------------------------------------------------


def _fused(staging: Staging, grid: list[Node], chunked: Node | None, lanes: int) -> tuple[list[list[Node]], list[Node]]:
    """The grid as runs of axes that lie side by side in every tensor, and the run that the chunked axis ends.

    A lane axis too short for a vector joins its neighbour where they are side by side in what is written: reads are then gathered.
    """
    written = list(_written(staging))
    everything = [*written, *_orders(staging)]
    runs: list[list[Node]] = []
    for axis in [*grid, *([chunked] if chunked is not None else [])]:
        shapes = written if axis == chunked and _too_short(staging, axis, lanes) else everything
        if runs and all(_adjacent(order, runs[-1][-1], axis) for order in shapes):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    if chunked is None:
        return runs, []
    if runs[-1][-1] != chunked:
        raise AssertionError("the chunked axis ends the last run")
    return runs[:-1], runs[-1]


def _orders(staging: Staging) -> list[list[Node | None]]:
    """For every tensor that is read, the axes of its dimensions longer than 1 in memory order (None: read in another way)."""
    orders: list[list[Node | None]] = []
    for op in staging.live:
        if is_generic(op):
            structured, loops = StructuredOp(op), staging.axes.of_op(op)
            for value, map_ in zip((*structured.inputs, *structured.outputs), structured.maps, strict=True):
                if splat_value(value) is None and not _uninitialised(value):
                    orders.append(_order(staging, value, map_, loops))
            orders += [_gathered_order(staging, gather, loops) for gather in gathers(op)]
        else:
            orders += _moved(staging, op)
    return orders


def _gathered_order(staging: Staging, gather: Gather, loops: Sequence[Node | None]) -> list[Node | None]:
    sizes = staging.view.shapes.dims(gather.source)
    return [loops[loop] if loop is not None else None for loop, size in zip(gather.loops, sizes, strict=True) if size != 1]


def _too_short(staging: Staging, axis: Node, lanes: int) -> bool:
    extent = staging.axes.extents[axis]
    return isinstance(extent, int) and extent < lanes and all(stage.op is None for stage in staging.stages)


def _written(staging: Staging) -> list[list[Node | None]]:
    """`_orders` of what the stages make."""
    orders: list[list[Node | None]] = []
    for stage in staging.stages:
        for value in stage.values:
            orders.append([axis for axis in staging.axes.of_value(value) if axis is not None])
            orders += [[axis, None] for d in stage.destinations.get(value, ()) if d.place.sliced for axis in _cut(staging, value, d.place)]
    return orders


def _cut(staging: Staging, value: SSAValue, place: Place) -> list[Node]:
    """Axes behind which memory skips the rest of a larger tensor: those before one along which the value is a part of it."""
    axes, sizes = staging.axes.of_value(value), staging.view.shapes.dims(value)
    cut = [i for i, (size, whole) in enumerate(zip(sizes, place.dims, strict=True)) if size != whole]
    before = [[axis for axis in axes[:i] if axis is not None] for i in cut]
    return [moving[-1] for moving in before if moving]


def _moved(staging: Staging, op: Operation) -> list[list[Node | None]]:
    """The orders of what a data-moving op reads and makes, in terms of its result's axes."""
    made = staging.axes.of_value(op.results[0])
    orders: list[list[Node | None]] = [[axis for axis in made if axis is not None]]
    pairs = list(plain_pairs(staging.view, op))
    for source in op.operands:
        if isinstance(source.type, TensorType):
            known = {axis: made[result_axis] for value, axis, result_axis in pairs if value is source}
            sizes = staging.view.shapes.dims(source)
            orders.append([known.get(i) for i, size in enumerate(sizes) if size != 1])
    return orders


def _order(staging: Staging, value: SSAValue, map_: AffineMap, loops: Sequence[Node | None]) -> list[Node | None]:
    order: list[Node | None] = []
    for expr, size in zip(map_.results, staging.view.shapes.dims(value), strict=True):
        if isinstance(expr, AffineDimExpr):
            if loops[expr.position] is not None:
                order.append(loops[expr.position])
        elif size != 1:
            order.append(None)
    return order


def _adjacent(order: Sequence[Node | None], first: Node, second: Node) -> bool:
    if first not in order and second not in order:
        return True
    if first not in order or second not in order:
        return False
    return order.index(first) + 1 == order.index(second)


# groups --------------------------------------------------------------------------------------------------------------------------------


def _groups(staging: Staging, grid: set[Node]) -> list[Group]:
    groups: list[Group] = []
    home: dict[SSAValue, int] = {}
    for stage in staging.stages:
        inner = [axis for axis in stage.parallel if axis not in grid]
        first = max((home[value] for value in stage.reads if value in home), default=0)
        at, together = _place(staging, groups, stage, inner, first)
        if at == len(groups):
            groups.append(Group(inner, []))
        groups[at].stages.append(stage)
        if together:
            groups[at].together.append(stage)
        home.update((value, at) for value in stage.values)
    return groups


def _place(staging: Staging, groups: list[Group], stage: Stage, inner: list[Node], first: int) -> tuple[int, bool]:
    """The first group from `first` on whose loops the stage can share, and whether it reduces over them; else a new group."""
    for at in range(first, len(groups)):
        group = groups[at]
        if not _in_step(staging, group, stage):
            continue
        if group.inner == inner:
            return at, False
        if stage.op is not None and not inner and group.inner and stage.reduction == group.inner and combiners(stage.op) is not None:
            return at, True
    return len(groups), False


def _in_step(staging: Staging, group: Group, stage: Stage) -> bool:
    """Whether what the stage reads of the group is there at the same point."""
    for other in group.stages:
        for value in other.values:
            if value in stage.reads and (other in group.together or staging.loose.get(value)):
                return False
    return True
