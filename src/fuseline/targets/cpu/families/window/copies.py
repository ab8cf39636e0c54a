"""Images whose neighbouring pixels meet in few sets of the first-level cache: what a window over them does instead.

At 256 channels of 4 bytes a pixel shares its sets with every fourth one. The columns under a tile evict each other, and
a depthwise convolution takes twice as long as at 240 channels. Two ways out: tiles of few pixels that use whole cache
lines at once; or, where elements are loaded often, a copy of some lines and channels, pixel beside pixel, with the
padding around them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import prod

from fuseline.analysis.image_strips import channel_lines
from fuseline.analysis.source_paths import Bound
from fuseline.analysis.strip_shapes import Extent, StripShape, bunch_of, strip_height, strip_shape, times_evaluated
from fuseline.ir import dim as d
from fuseline.ir.costs import LINE_BYTES, assumed_size
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.families.contraction.axes import Axis, estimated
from fuseline.targets.cpu.families.directions import Direction, direction
from fuseline.targets.cpu.families.window.in_strips import InStrips
from fuseline.targets.cpu.families.window.loops import WindowLoops
from fuseline.targets.cpu.families.window.pairs import in_pairs
from fuseline.targets.cpu.families.window.plan import WindowPlan, plan_window
from fuseline.targets.cpu.isa.core_rates import L1_SETS
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.cpu.tiles import BlockedWork, RowSplit, choose_blocks, shared_out
from fuseline.targets.target import Refusal

LOADS_PER_COPY, LOADS_PER_SPARED_COPY = 2.5, 4.0
"""Loads of an element from which on it is copied first: where tiles of whole cache lines crowd the sets as well, and
where they do not."""


@dataclass(frozen=True, kw_only=True)
class CopiedWindowPlan(WindowPlan):
    """A plan whose image is copied: `strip_lines` lines of the result, `strip_pixels` of each, at a time, for `bunch`
    panels of channels. A tile is one vector of a panel.

    A workgroup has `blocks.lines` strips for `blocks.panels` bunches. `turned`: what the image is made of lies along
    its pixels.
    """

    rows: Direction
    columns: Direction
    strip_lines: int
    strip_pixels: int
    bunch: int
    turned: bool = False

    def image_channels(self, channels: int) -> int:
        """The channels of the image behind so many of the result, in whole groups."""
        groups = self.loops.groups
        return channels if groups is None else channels // groups.outputs * groups.inputs

    @property
    def pitch(self) -> int:
        """Channels of a copied pixel."""
        return self.bunch * self.image_channels(self.width)

    @property
    def staged_panels(self) -> int:
        """Panels of the filter that are in scratch together: those of a bunch."""
        return self.bunch

    @property
    def skipped_rows(self) -> tuple[Bound, ...]:
        """The bounds of rows that a window leaves out where they are padding, so that the copy needs none of them."""
        loops = self.loops
        if not loops.skips_padding or self.rows.border is not None:
            return ()
        down = {axis.inner for axis in loops.down}
        return tuple(bound for bound in loops.images[0].access.bounds if not down.isdisjoint(bound.coordinate.terms))

    @property
    def row_columns(self) -> int:
        """Pixels of a copied row."""
        return self.columns.steps(self.strip_pixels)

    @property
    def copied(self) -> int:
        """Elements of the copy, and what vectors at its end reach beyond it."""
        slack = 2 * self.lanes if self.pitch % self.lanes or self.loops.groups is not None else 0
        return self.rows.steps(self.strip_lines) * self.row_columns * self.pitch + slack

    @property
    def split(self) -> RowSplit | None:
        """Tiles along the line; None where strips have some of its pixels."""
        assert self.loops.pixel is not None
        return super().split if self.strip_pixels == self.loops.pixel.extent else None

    @property
    def in_lines(self) -> InStrips:
        """The lines of the result, in strips."""
        return InStrips(self.loops.line.extent if self.loops.line is not None else 1, self.strip_lines)

    @property
    def in_pixels(self) -> InStrips:
        """The pixels of a line, in strips."""
        assert self.loops.pixel is not None
        return InStrips(self.loops.pixel.extent, self.strip_pixels)

    @property
    def strips(self) -> Dim:
        """Strips of lines, and of their pixels."""
        return d.mul(self.in_lines.count, self.in_pixels.count)

    @property
    def bunches(self) -> int:
        """Bunches of panels, the last one perhaps smaller."""
        return -(-known(self.panel_count) // self.bunch)

    @property
    def grid(self) -> tuple[Dim, ...]:
        """Extents of the grid, slowest first: outer axes, blocks of strips, blocks of bunches."""
        outer = (axis.extent for axis in self.loops.outer)
        return (*outer, d.ceil_div(self.strips, self.blocks.lines), -(-self.bunches // self.blocks.panels))


def uncrowded(plan: WindowPlan, machine: Machine) -> WindowPlan:
    """The plan, or a better one where the columns under its tiles meet in few sets of the cache: fewer pixels of more
    channels, or a copy; where they do not, tiles in pairs of vectors (`in_pairs`)."""
    found = ways_of(plan.loops)
    if (
        found is None
        or plan.vectors != 1
        or plan.split is None
        or not _crowded(plan.loops, found, (plan.pixels, 1), machine)
    ):
        return _paired(plan, machine)
    tile = _wide_tile(plan, found, machine)
    loads = _loads(found, plan.pixels)
    if loads > (LOADS_PER_COPY if _crowded(plan.loops, found, tile, machine) else LOADS_PER_SPARED_COPY):
        copied = with_copy(plan, machine)
        if copied is not None:
            return copied
    wide = plan_window(plan.loops, machine, tile)
    return plan if isinstance(wide, Refusal) else wide


def _paired(plan: WindowPlan, machine: Machine) -> WindowPlan:
    tile = in_pairs(plan.loops, machine) if plan.vectors == 1 else None
    wide = plan_window(plan.loops, machine, tile) if tile is not None else plan
    return plan if isinstance(wide, Refusal) else wide


def is_crowded(plan: WindowPlan, machine: Machine) -> bool:
    """Whether tiles of one vector, and as many pixels as the plan has, would crowd the sets."""
    found = ways_of(plan.loops)
    return found is not None and _crowded(plan.loops, found, (plan.pixels, 1), machine)


def _wide_tile(plan: WindowPlan, ways: tuple[Direction, Direction], machine: Machine) -> tuple[int, int]:
    """Pixels and vectors of a tile that uses the cache lines it touches whole, and the next ones: those are brought in
    pairs."""
    channels = -(-known(plan.loops.channel.extent) // plan.lanes)
    lines = 1 if plan.columns_first else 2
    vectors = max(1, min(channels, lines * LINE_BYTES // (plan.lanes * BYTES[plan.loops.dtype])))
    if not plan.columns_first:
        return max(2, min(plan.pixels, (machine.vector_registers - 4) // vectors)), vectors
    room = machine.vector_registers - 3
    return max([2, *(n for n in range(2, plan.pixels + 1) if len(_columns(ways[1], n)) * vectors <= room)]), vectors


def _loads(ways: tuple[Direction, Direction], pixels: int) -> float:
    """How often tiles of so many pixels load an element of the image."""
    rows, columns = ways
    return len(_columns(columns, pixels)) / (pixels * max(1, columns.along)) * rows.positions / max(1, rows.along)


def with_copy(plan: WindowPlan, machine: Machine, *, turned: bool = False) -> CopiedWindowPlan | None:
    """The plan (of one vector per tile) with a copied image; None where the window does not step plainly, or one line
    takes too much scratch. `turned`: what the image is made of lies along its pixels."""
    loops, ways = plan.loops, ways_of(plan.loops)
    if ways is None:
        return None
    shapes = {n: _strip_shape(plan, ways, n, machine) for n in ((2,) if loops.computed is None else (1, 2))}
    often = {n: shape.often for n, shape in shapes.items() if shape is not None}
    cache_lines = channel_lines(often.get, ways[0].positions)
    shape, lines = shapes[cache_lines], loops.line.extent if loops.line is not None else 1
    if shape is None:
        return None
    strip_lines = shared_out(lines, shape.lines) if isinstance(lines, int) else shape.lines
    copied = CopiedWindowPlan(
        view=plan.view, workgroups=0, constant_layouts=plan.constant_layouts, loops=loops, pixels=plan.pixels,
        vectors=1, lanes=plan.lanes,
        blocks=plan.blocks, packed=plan.packed, paths=plan.paths, columns_first=plan.columns_first,
        rows=ways[0], columns=ways[1], strip_lines=strip_lines, strip_pixels=shape.pixels,
        bunch=_bunch(plan, cache_lines), turned=turned,
        notes={**plan.notes, "image": "copied" if loops.computed is None else "evaluated"},
    )  # fmt: skip
    return spread_out(copied, machine)


def _bunch(plan: WindowPlan, cache_lines: int) -> int:
    """Panels that fill so many cache lines."""
    return bunch_of(known(plan.panel_count), plan.width * BYTES[plan.loops.dtype], cache_lines)


def _strip_shape(
    plan: WindowPlan, ways: tuple[Direction, Direction], cache_lines: int, machine: Machine
) -> StripShape | None:
    """The strips whose image of so many cache lines of channels fits the scratch; of whole lines where the image is
    stored; None where not one does."""
    (rows, columns), loops = ways, plan.loops
    pixel_bytes = _bunch(plan, cache_lines) * plan.width * BYTES[loops.dtype]
    lines, pixels = extent_of(loops.line, rows), extent_of(loops.pixel, columns)
    if loops.computed is not None:
        return strip_shape(lines, pixels, pixel_bytes)
    high = strip_height(rows.steps, lines.count, columns.steps(pixels.count) * pixel_bytes, machine.l2_bytes // 4)
    return StripShape(high, pixels.count, times_evaluated(rows.steps, lines.count, high)) if high else None


def extent_of(axis: Axis | None, way: Direction) -> Extent:
    """An axis of the result, as strips are chosen by: as long as it is assumed to be."""
    extent = axis.extent if axis is not None else 1
    return Extent(assumed_size(extent), way.steps, isinstance(extent, int))


def known(size: Dim) -> int:
    """A size that is not a matter of the run."""
    assert isinstance(size, int)
    return size


def ways_of(loops: WindowLoops) -> tuple[Direction, Direction] | None:
    """The directions down the lines and along the pixels, where nothing else moves over the image and all is known now
    (not how many there are, where they are always copied); else None."""
    copied = loops.computed is not None or loops.groups is not None
    axes = [loops.channel] if copied else [loops.channel, loops.line, loops.pixel]
    known = all(isinstance(axis.extent, int) for axis in axes if axis is not None)
    if len(loops.images) != 1 or loops.pixel is None or loops.across is None or len(loops.down) > 1 or not known:
        return None
    access = loops.images[0].access
    moving = [loop for loop, extent in enumerate(loops.extents) if extent != 1]
    rows = direction(access, loops.line, loops.down[0] if loops.down else None, moving)
    columns = direction(access, loops.pixel, loops.across, moving)
    ways = [way for way in (rows, columns) if way is not None and isinstance(way.first, int)]
    bounded = len(access.bounds) <= sum(way.size is not None for way in ways)
    return (ways[0], ways[1]) if len(ways) == 2 and bounded else None


def _columns(columns: Direction, pixels: int) -> set[int]:
    """The image columns under so many pixels."""
    return {pixel * columns.along + tap * columns.window for pixel in range(pixels) for tap in range(columns.positions)}


def _crowded(loops: WindowLoops, ways: tuple[Direction, Direction], tile: tuple[int, int], machine: Machine) -> bool:
    """Whether more lines of image and result meet in a set of the first-level cache, under one tile, than it holds
    beside other streams."""
    (rows, columns), (pixels, vectors) = ways, tile
    stored, size, channels = BYTES[loops.image_dtype], BYTES[loops.dtype], known(loops.channel.extent)
    elements = vectors * machine.lanes(loops.dtype)
    places = [
        row * rows.window * estimated(rows.stride) + column * estimated(columns.stride)
        for row in range(rows.positions)
        for column in _columns(columns, pixels)
    ]
    image = {(place * stored + b) // LINE_BYTES for place in places for b in range(0, elements * stored, LINE_BYTES)}
    written = range(0, elements * size, LINE_BYTES)
    result = {(pixel * channels * size + b) // LINE_BYTES for pixel in range(pixels) for b in written}
    sets = Counter(line % L1_SETS for lines in (image, result) for line in lines)
    return max(sets.values()) > machine.l1_bytes // (LINE_BYTES * L1_SETS) - 2


def known_outer(loops: WindowLoops) -> int:
    """Points of the outer axes: a batch known at run time may be 1, and must be shared out even then."""
    return prod(axis.extent for axis in loops.outer if isinstance(axis.extent, int))


def spread_out(plan: CopiedWindowPlan, machine: Machine) -> CopiedWindowPlan:
    """The plan with its grid: strips of lines and bunches of panels in blocks."""
    loops = plan.loops
    # a step alone is bound by loads, as `window_blocks` has it
    cost = 8 if loops.groups is None else 2 * loops.groups.inputs
    work = (
        cost
        * plan.rows.positions
        * plan.columns.positions
        * plan.strip_pixels
        * plan.strip_lines
        * plan.bunch
        * plan.width
    )
    blocks = choose_blocks(
        BlockedWork(
            known_outer(loops),
            estimated(plan.strips),
            1,
            plan.bunches,
            work,
            0,
            0,
            repacks_rhs=plan.stages_filter,
            serial=loops.view.serial,
        ),
        machine,
    )
    plan = replace(plan, blocks=blocks)
    return replace(plan, workgroups=d.product(plan.grid))
