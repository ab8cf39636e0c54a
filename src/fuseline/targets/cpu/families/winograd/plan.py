"""What is decided about a convolution by minimal filtering: tiles, blocks of tiles and columns, scratch, and the layout
of the filter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from fuseline.analysis.indexing_maps import loops_of
from fuseline.ir import dim as d
from fuseline.ir.costs import LINE_BYTES
from fuseline.ir.dim import Dim
from fuseline.ir.work_costs import FILTERED, filtered_work
from fuseline.targets.cpu.combinators.prefetch import NONE, Prefetch, schedule_prefetches
from fuseline.targets.cpu.families.contraction.axes import as_one
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.families.winograd.loops import ImageSegment, WinogradLoops
from fuseline.targets.cpu.families.winograd.matrices import Filtering
from fuseline.targets.cpu.families.winograd.shared_form import SharedForm
from fuseline.targets.cpu.isa.core_rates import FMA_PER_CYCLE
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.cpu.tiles import RowSplit, Tile, split_in_tiles, split_rows
from fuseline.weight_layouts import PackedLayout

PATCH_VECTORS = 8
"""Vectors of channels that are read and transformed together: a patch of them then fits the first-level cache. One
where channels lie in planes of their own: neighbouring tiles share lines, which one set of the cache may have to
hold."""

TILE_CYCLES = 40
"""To begin and end a register tile."""

CONFLICTING_LINES = 8
"""Streams a multiple of so many lines apart meet in an eighth of the sets or less."""

_LINE = LINE_BYTES // BYTES["f32"]


@dataclass(frozen=True, slots=True)
class Blocking:
    """Filtering per window axis; `tiles` of the image per workgroup; the register `tile` of the products; `panels` of
    columns per pass, and `passes` per workgroup."""

    axes: tuple[Filtering, ...]
    tiles: int
    tile: Tile
    panels: int
    passes: int

    @property
    def points(self) -> int:
        """Elements of a transformed tile, one product each."""
        return prod(axis.size for axis in self.axes)

    @property
    def outputs(self) -> int:
        """Pixels of the result that a tile makes."""
        return prod(axis.outputs for axis in self.axes)


@dataclass(frozen=True, kw_only=True)
class WinogradPlan(Plan):
    """The loops with their blocking. `form`: what the kernel has in common with others that are the same code;
    `partial_steps`: the channels of a partial sum then."""

    loops: WinogradLoops
    blocking: Blocking
    lanes: int
    prefetch: Prefetch
    form: SharedForm | None = None
    partial_steps: int = 0

    @property
    def width(self) -> int:
        """Columns of a panel."""
        return self.blocking.tile.vectors * self.lanes

    @property
    def panel_count(self) -> int:
        """Panels of the filter, padded to whole passes."""
        return self.pass_count * self.blocking.panels

    @property
    def pass_count(self) -> int:
        """Passes over all columns."""
        return -(-self.loops.columns // (self.width * self.blocking.panels))

    @property
    def filter_elements(self) -> int:
        """Elements of the transformed filter; the filter as it is follows them."""
        return self.blocking.points * self.loops.channels * self.panel_count * self.width

    @property
    def group_count(self) -> int:
        """Workgroups that share a block of tiles and divide its columns."""
        return -(-self.pass_count // self.blocking.passes)

    @property
    def divides_columns(self) -> bool:
        """Whether there are several of them, here or in a kernel that is the same code."""
        return self.group_count > 1 or (self.form is not None and self.form.groups)

    @property
    def pass_width(self) -> int:
        """Columns of a pass."""
        return self.width * self.blocking.panels

    @property
    def grid(self) -> tuple[Dim, ...]:
        """Tiles: the outer loops, then the tiles along each window axis."""
        loops = self.loops
        outer = (loops.contraction.extents[loop] for loop in loops.outer)
        counts = (
            d.ceil_div(axis.outputs, f.outputs) for axis, f in zip(loops.windows, self.blocking.axes, strict=True)
        )
        return (*outer, *counts)

    @property
    def tile_count(self) -> Dim:
        """All tiles."""
        return d.product(self.grid)

    @property
    def has_few_tiles(self) -> bool:
        """Whether there may be far fewer tiles than a block has: only the run knows."""
        return self.form is None and not isinstance(self.tile_count, int)

    @property
    def rows(self) -> RowSplit:
        """The products' rows, one per tile, in register tiles."""
        if self.form is not None:
            return split_in_tiles(self.blocking.tiles, self.form.height)
        return split_rows(self.blocking.tiles, self.blocking.tile.rows)

    @property
    def channel_pitch(self) -> int:
        """Elements between two points of a transformed tile."""
        return _apart(-(-self.loops.channels // self.lanes) * self.lanes)

    @property
    def image_stride(self) -> int:
        """Elements between two transformed tiles."""
        return _apart(self.blocking.points * self.channel_pitch)

    @property
    def column_pitch(self) -> int:
        """Elements between two points of a tile's products."""
        return _apart(self.pass_width)

    @property
    def product_stride(self) -> int:
        """Elements between the products of two tiles."""
        return _apart(self.blocking.points * self.column_pitch)

    @property
    def segments(self) -> tuple[ImageSegment, ...]:
        """The image's segments where each is of whole vectors (but for the end of the last); none where pixels are
        evaluated."""
        segments = self.loops.segments
        whole = all(segment.start % self.lanes == 0 for segment in segments)
        return segments if whole else ()

    @property
    def vectors(self) -> int:
        """Vectors of channels."""
        return -(-self.loops.channels // self.lanes)

    @property
    def piece(self) -> int:
        """Vectors of channels that are read and transformed at once."""
        if self.loops.lying.turned is not None:
            return 1
        if self.form is not None:
            return self.form.piece
        starts = [segment.start // self.lanes for segment in self.segments]
        even = [n for n in range(1, PATCH_VECTORS + 1) if all(start % n == 0 for start in (*starts, self.vectors))]
        return even[-1] if even[-1] > 2 else min(PATCH_VECTORS, self.vectors)


def ends_with_tiles(plan: WinogradPlan, axis: int) -> bool:
    """Whether the last tile along a window axis ends with the image, and is known to in all kernels that are the same
    code."""
    outputs = plan.loops.windows[axis].outputs
    mine = isinstance(outputs, int) and outputs % plan.blocking.axes[axis].outputs == 0
    return mine and (plan.form is None or plan.form.whole_tiles[axis])


def winograd_plan(loops: WinogradLoops, blocking: Blocking, machine: Machine) -> WinogradPlan:
    """The plan of a blocking. Panels are prefetched where the filter does not stay in the second-level cache."""
    plan = WinogradPlan(
        view=loops.view, workgroups=0, loops=loops, blocking=blocking, lanes=machine.lanes("f32"), prefetch=NONE
    )
    if 2 * plan.filter_elements * BYTES["f32"] > machine.l2_bytes:
        line = LINE_BYTES // BYTES["f32"]
        steps = loops.channels
        plan = replace(
            plan, prefetch=schedule_prefetches(steps, steps, -(-steps * plan.width // line), plan.rows.count, line)
        )
    position = loops.view.tensors.index(loops.contraction.rhs.value)  # pyright: ignore[reportArgumentType]
    sizes = "x".join(str(axis.outputs) for axis in blocking.axes)
    taps = "x".join(str(axis.taps) for axis in blocking.axes)
    notes = {
        "filtering": f"F({sizes},{taps})", "tile": f"{plan.rows.height}x{plan.width}",
        "block": f"{blocking.tiles}x{plan.pass_width}",
        "image": _image_note(plan),
        FILTERED: filtered_work(
            plan.tile_count, blocking.points, loops.channels, loops.columns, _with_tiles_begun(plan)
        ),
    }  # fmt: skip
    workgroups = d.mul(d.ceil_div(plan.tile_count, blocking.tiles), plan.group_count)
    return replace(plan, workgroups=workgroups, constant_layouts={position: filter_layout(plan)}, notes=notes)


def _image_note(plan: WinogradPlan) -> str:
    if plan.segments:
        return f"{len(plan.segments)} segments"
    return "evaluated" if plan.loops.lying.turned is None else "turned"


def _with_tiles_begun(plan: WinogradPlan) -> float:
    """How many times as long its products take with the register tiles that begin and end."""
    blocking, rows = plan.blocking, plan.rows
    cycles = plan.loops.channels * blocking.tiles * blocking.tile.vectors / FMA_PER_CYCLE
    return 1 + rows.count * TILE_CYCLES / cycles


def filter_layout(plan: WinogradPlan) -> PackedLayout:
    """The transformed filter: pass, point, panel, channel, column of the panel."""
    loops, (filter_loops, seen) = plan.loops, _filter_dims(plan)
    taps = {axis.tap: f for axis, f in zip(loops.windows, plan.blocking.axes, strict=True)}
    pad_to: list[int] = []
    reshape: list[int] = []
    place: dict[int | None, int] = {}
    column = loops.contraction.column.inner
    for loop, size in zip(filter_loops, seen, strict=True):
        place[loop] = len(reshape)
        extent = taps[loop].size if loop in taps else plan.panel_count * plan.width if loop == column else size
        pad_to.append(extent)
        reshape += [plan.pass_count, plan.blocking.panels, plan.width] if loop == column else [extent]
    first = place[column]
    wanted = [first, *(place[axis.tap] for axis in loops.windows), first + 1, place[loops.channel], first + 2]
    rest = [i for i in range(len(reshape)) if i not in wanted]
    matrices = tuple(taps[loop].filter if loop in taps else None for loop in filter_loops)
    direct, shape = direct_filter_layout(plan), seen if len(loops.contraction.column.loops) > 1 else ()
    return PackedLayout(tuple(pad_to), tuple(reshape), (*rest, *wanted), matrices, direct, shape)


def direct_filter_layout(plan: WinogradPlan) -> PackedLayout:
    """The filter as it is, for tiles that are computed directly: pass, taps, channel, column of the pass."""
    loops, (filter_loops, seen), column = plan.loops, _filter_dims(plan), plan.loops.contraction.column.inner
    pad_to = tuple(
        plan.pass_count * plan.pass_width if loop == column else size
        for loop, size in zip(filter_loops, seen, strict=True)
    )
    split = filter_loops.index(column)
    reshape = (*pad_to[:split], plan.pass_count, plan.pass_width, *pad_to[split + 1 :])
    place = {loop: i + (i > split) for i, loop in enumerate(filter_loops)}
    wanted = [split, *(place[axis.tap] for axis in loops.windows), place[loops.channel], split + 1]
    rest = [i for i in range(len(reshape)) if i not in wanted]
    return PackedLayout(pad_to, reshape, (*rest, *wanted))


def _filter_dims(plan: WinogradPlan) -> tuple[tuple[int | None, ...], tuple[int, ...]]:
    """The loop behind each dimension of the filter, and its size; the columns are one."""
    loops = plan.loops.contraction
    sizes = [size for size in loops.view.shapes.dims(loops.rhs.value) if isinstance(size, int)]
    return as_one(loops.column, loops_of(loops.rhs.map.results), sizes)


def _apart(elements: int) -> int:
    """`elements`, or a cache line more where streams that far apart would share few sets of the first-level cache."""
    lines = -(-elements // _LINE)
    return elements if lines % CONFLICTING_LINES else (lines + 1) * _LINE
