"""Windows over images whose channels come first: vectors run along the pixels of a line, a tile is several lines.

    out[.., channel, line, pixel] = combine over window of image[.., channel, line + down, pixel + across]
                                                                                   (* filter[channel, down, across])

The lines under some tiles are copied to scratch with their padding, so that the lanes meet none. Then it is a window
like others, with other roles: what runs along the lanes is a pixel, the tiled axis the line, and a tap of the filter is
the same for all lanes, however the filter lies.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from fuseline.analysis.image_strips import plane_strips
from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.linear_forms import Linear
from fuseline.analysis.operand_access import LinearAccess
from fuseline.analysis.strip_shapes import STRIP_BYTES
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.combinators.split import Range, block_of, first_of, split_tiles
from fuseline.targets.cpu.families.contraction.axes import Axis, estimated
from fuseline.targets.cpu.families.contraction.runtime_pixels import RuntimePixels
from fuseline.targets.cpu.families.directions import Direction, direction
from fuseline.targets.cpu.families.window.copied_rows import (
    CopiedRows,
    EvaluatedRoles,
    EvaluatedRows,
    StoredRows,
    moves_of,
)
from fuseline.targets.cpu.families.window.copies import extent_of, known_outer
from fuseline.targets.cpu.families.window.image_copy import PlaneCopy
from fuseline.targets.cpu.families.window.image_reader import int_stride
from fuseline.targets.cpu.families.window.in_strips import InStrips
from fuseline.targets.cpu.families.window.kernel import WindowKernel
from fuseline.targets.cpu.families.window.loops import Image, WindowLoops, window_along, window_loops
from fuseline.targets.cpu.families.window.plan import WindowPlan, is_uniform, plan_window
from fuseline.targets.cpu.families.window.tile import Tile
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import BYTES, MemRef, Operand
from fuseline.targets.cpu.tiles import BlockedWork, Blocks, RowSplit, choose_blocks, shared_out
from fuseline.targets.target import Refusal


@dataclass(frozen=True, kw_only=True)
class PlanesPlan(WindowPlan):
    """A plan over a copy of `original`, for `band` tiles of `strip_pixels` pixels at a time, at most; `rows` and
    `columns` are its directions. A workgroup has `blocks.lines` planes, `blocks.panels` strips of each."""

    original: LinearAccess
    rows: Direction
    columns: Direction
    band: int
    strip_pixels: int

    @property
    def pitch(self) -> int:
        """Elements of a copied row."""
        return self.columns.steps(self.strip_pixels)

    @property
    def copied(self) -> int:
        """Elements of the copy, and what vectors at its end reach beyond it."""
        return (
            self.rows.steps(self.band * self.pixels) * self.pitch
            + self.width * max(1, self.columns.along)
            + 2 * self.lanes
        )

    @property
    def in_bands(self) -> InStrips:
        """The tiles of a plane where they are known, or its lines."""
        assert self.loops.pixel is not None
        split = self.split
        return InStrips(split.count, self.band) if split else InStrips(self.loops.pixel.extent, self.band * self.pixels)

    @property
    def in_panels(self) -> InStrips:
        """The panels of a line."""
        return InStrips(self.panel_count, -(-self.strip_pixels // self.width))

    @property
    def strips(self) -> Dim:
        """Strips of a plane: bands, and of their pixels."""
        return d.mul(self.in_bands.count, self.in_panels.count)

    @property
    def grid(self) -> tuple[Dim, ...]:
        """Extents of the grid, slowest first: outer axes, blocks of planes, blocks of strips."""
        planes = d.ceil_div(self.loops.line.extent, self.blocks.lines) if self.loops.line is not None else 1
        return (*(axis.extent for axis in self.loops.outer), planes, d.ceil_div(self.strips, self.blocks.panels))


def plan_planes(view: DispatchView, machine: Machine) -> PlanesPlan | Refusal:
    """The plan of a window whose lanes run along the pixels of a line, or why there is none."""
    loops = window_loops(view, planes=True)
    return loops if isinstance(loops, Refusal) else planes_of(loops, machine)


def planes_of(loops: WindowLoops, machine: Machine) -> PlanesPlan | Refusal:
    """The same of loops whose lanes are pixels."""
    line, filter_ = loops.pixel, loops.filter
    ways = _ways(loops)
    if ways is None or line is None or len(loops.images) > 1:
        return Refusal("planes", "lines and pixels do not step over one image by whole numbers known now")
    if filter_ is not None and not is_uniform(loops):
        return Refusal("filter-per-pixel", "the filter differs between pixels")
    if filter_ is not None and set(line.loops) & used_dims(filter_.map):
        return Refusal("filter-per-pixel", "the filter differs between lines")
    shape = plane_strips(extent_of(line, ways[0]), extent_of(loops.channel, ways[1]), BYTES[loops.dtype])
    if shape is None:
        return Refusal("scratch", "the lines under a tile do not fit the scratch")
    plan = plan_window(_over_copy(loops, ways, shape.pixels), machine, by_line=True)
    return plan if isinstance(plan, Refusal) else _in_strips(plan, loops, ways, shape.pixels, machine)


def _ways(loops: WindowLoops) -> tuple[Direction, Direction] | None:
    """The directions down the lines and along the pixels; None where they are not plain, or something else moves in the
    window."""
    access, lane = loops.images[0].access, loops.channel
    along = [axis for axis in loops.down if axis.inner in window_along(loops.root, loops.image_position, lane.inner)]
    if loops.pixel is None or loops.across is None or len(loops.down) > 1 or len(along) != len(loops.down):
        return None
    moving = [loop for loop, extent in enumerate(loops.extents) if extent != 1]
    rows = direction(access, loops.pixel, loops.across, moving)
    columns = direction(access, lane, along[0] if along else None, moving)
    if rows is None or columns is None or columns.stride != 1:
        return None
    return (rows, columns) if len(access.bounds) == sum(way.size is not None for way in (rows, columns)) else None


def _over_copy(loops: WindowLoops, ways: tuple[Direction, Direction], pixels: int) -> WindowLoops:
    """The loops over a copy of so many pixels of a line."""
    (rows, columns), pitch = ways, ways[1].steps(pixels)
    steps = [
        (loops.pixel, rows.along * pitch),
        (loops.across, rows.window * pitch),
        (loops.channel, columns.along),
    ]
    steps += [(axis, columns.window) for axis in loops.down]
    access = LinearAccess(
        loops.images[0].access.source, Linear({axis.inner: step for axis, step in steps if axis is not None})
    )
    return replace(loops, images=(Image(access, 0, loops.channel.extent),), skips_padding=False)


def _in_strips(
    plan: WindowPlan, loops: WindowLoops, ways: tuple[Direction, Direction], pixels: int, machine: Machine
) -> PlanesPlan:
    """The plan with its copy, of whole panels where it has some of `pixels`, and its grid."""
    given: dict[str, Any] = {field.name: getattr(plan, field.name) for field in fields(plan)}
    image = "planes" if loops.computed is None else "evaluated planes"
    pixels = pixels if pixels == loops.channel.extent else -(-pixels // plan.width) * plan.width
    given |= {"notes": {**plan.notes, "image": image}, "blocks": Blocks(1, 1, 1, False)}
    given |= {"loops": _over_copy(loops, ways, pixels)}
    original = loops.images[0].access
    whole = PlanesPlan(**given, original=original, rows=ways[0], columns=ways[1], band=1, strip_pixels=pixels)
    whole = replace(whole, band=_band_of(whole, machine))
    lines = loops.line.extent if loops.line is not None else 1
    work = 8 * ways[0].positions * ways[1].positions * pixels * whole.band * plan.pixels
    blocks = BlockedWork(
        known_outer(loops),
        lines if isinstance(lines, int) else 1,
        1,
        estimated(whole.strips),
        work,
        0,
        0,
        serial=loops.view.serial,
    )
    whole = replace(whole, blocks=choose_blocks(blocks, machine))
    return replace(whole, workgroups=d.product(whole.grid))


def _band_of(plan: PlanesPlan, machine: Machine) -> int:
    """The most tiles whose copy stays near the first-level cache, bands as equal as can be."""
    assert plan.loops.pixel is not None
    count = plan.split.count if plan.split is not None else -(-estimated(plan.loops.pixel.extent) // plan.pixels)
    sizes = [replace(plan, band=1 + n).copied * BYTES[plan.loops.dtype] for n in range(count)]
    most = 2 * machine.l1_bytes if plan.strip_pixels == plan.loops.channel.extent else STRIP_BYTES
    band = max(1, sum(size <= most for size in sizes))
    return shared_out(count, band) if plan.split is not None else band


class PlanesKernel(WindowKernel):
    """Builds the kernel of a plan over planes."""

    def __init__(self, plan: PlanesPlan, kernel: KernelBuilder) -> None:
        super().__init__(plan, kernel)
        self.planes = plan
        memory, shape = kernel.scratch(self.loops.dtype, plan.copied), (plan.pitch, plan.lanes)
        ways = plan.rows, plan.columns
        self.copy = PlaneCopy(self.buffers, self._source(), plan.original, ways, memory, shape)
        self.first_line: Operand = 0
        self.first_panel: Operand = 0

    def _source(self) -> CopiedRows[Any]:
        """The image as it lies, or what is evaluated for it."""
        plan, loops = self.planes, self.loops
        if loops.computed is None:
            return StoredRows(self.buffers, plan.original, (plan.rows, plan.columns))
        rows = moves_of(plan.rows, loops.pixel, loops.across)
        columns = moves_of(plan.columns, loops.channel, loops.down[0] if loops.down else None)
        return EvaluatedRows(self.emitter, loops.computed, EvaluatedRoles(rows, columns))

    def image_memory(self, image: Image) -> MemRef:
        """The copy."""
        return self.copy.memory

    def image_base(self, tile: Tile) -> Operand:
        """From the first line and panel of the strip."""
        kernel, access = self.kernel, tile.image.access
        line = kernel.mul(kernel.sub(tile.start, self.first_line), int_stride(access, self.loops.pixel))
        panel = kernel.sub(tile.panel, self.first_panel)
        return kernel.add(line, kernel.mul(panel, self.plan.width * int_stride(access, self.loops.channel)))

    def workgroup(self, number: Operand) -> tuple[Operand, ...]:
        """Planes outside, strips inside."""
        plan, kernel, line, operand = self.planes, self.kernel, self.loops.line, self.buffers.operand
        at = self.buffers.coordinates(number, plan.grid)
        outer = dict(zip(self.loops.outer, at, strict=False))
        planes = block_of(kernel, at[-2], plan.blocks.lines, operand(line.extent if line is not None else 1))
        strips = block_of(kernel, at[-1], plan.blocks.panels, operand(plan.strips))

        def plane(i: Operand) -> tuple[()]:
            here = {**outer, line: i} if line is not None else outer
            self.filters.enter(here, (0, 1))
            kernel.loop(*strips, 1, partial(self._strip, here))
            return ()

        kernel.loop(*planes, 1, plane)
        return ()

    def _strip(self, outer: dict[Axis, Operand], number: Operand) -> tuple[()]:
        """Copy the image under some tiles, then make the tiles."""
        plan, kernel, buffers = self.planes, self.kernel, self.buffers
        across = buffers.operand(plan.in_panels.count)
        begin, count = plan.in_bands.part(buffers, kernel.div(number, across))
        self.first_panel, panels = plan.in_panels.part(buffers, kernel.rem(number, across))
        within = self.first_panel, kernel.add(self.first_panel, panels)
        first = kernel.mul(self.first_panel, plan.width)
        left = kernel.sub(buffers.operand(self.loops.channel.extent), first)
        pixels = first, kernel.min(kernel.mul(panels, plan.width), left)
        if plan.split is not None:
            self._tiles(outer, plan.split, (begin, kernel.add(begin, count)), pixels, within)
        else:
            self._runtime_tiles(outer, (begin, count), pixels, within)
        return ()

    def _tiles(self, outer: dict[Axis, Operand], split: RowSplit, tiles: Range, pixels: Range, panels: Range) -> None:
        """The tiles of a band where the lines are known."""
        kernel = self.kernel
        self.first_line = first_of(kernel, split, tiles[0])
        self.copy.fill(outer, (self.first_line, kernel.sub(first_of(kernel, split, tiles[1]), self.first_line)), pixels)
        for alike in split_tiles(split):
            one = self.pixels(outer, alike.height)
            alike.each(kernel, lambda t, start, one=one: self.panels(one.of(start=start), panels), tiles)

    def _runtime_tiles(self, outer: dict[Axis, Operand], lines: Range, pixels: Range, panels: Range) -> None:
        """Those of so many lines as the run has."""
        kernel = self.kernel
        self.first_line = lines[0]
        self.copy.fill(outer, lines, pixels)

        def tile(height: int, start: Operand, stored: Operand) -> None:
            one = self.pixels(outer, height)
            self.panels(one.of(start=kernel.add(lines[0], start), stored=stored), panels)

        RuntimePixels(kernel, lines[1], self.plan.pixels).each(tile)
