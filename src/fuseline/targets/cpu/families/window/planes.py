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

from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.linear_forms import Linear
from fuseline.analysis.operand_access import LinearAccess
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.combinators.split import block_of, first_of, split_tiles
from fuseline.targets.cpu.families.contraction.axes import Axis
from fuseline.targets.cpu.families.directions import Direction, direction
from fuseline.targets.cpu.families.window.copied_rows import (
    CopiedRows,
    EvaluatedRoles,
    EvaluatedRows,
    StoredRows,
    moves_of,
)
from fuseline.targets.cpu.families.window.copies import known
from fuseline.targets.cpu.families.window.image_copy import PlaneCopy
from fuseline.targets.cpu.families.window.image_reader import int_stride
from fuseline.targets.cpu.families.window.kernel import WindowKernel
from fuseline.targets.cpu.families.window.loops import Image, WindowLoops, window_along, window_loops
from fuseline.targets.cpu.families.window.plan import WindowPlan, is_uniform, plan_window
from fuseline.targets.cpu.families.window.tile import Tile
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import BYTES, MemRef, Operand
from fuseline.targets.cpu.tiles import BlockedWork, Blocks, RowSplit, choose_blocks
from fuseline.targets.target import Refusal


@dataclass(frozen=True, kw_only=True)
class PlanesPlan(WindowPlan):
    """A plan over a copy of `original`, for `band` tiles at a time; `rows` and `columns` are its directions. A
    workgroup has `blocks.lines` planes, `blocks.panels` bands of each."""

    original: LinearAccess
    rows: Direction
    columns: Direction
    band: int

    @property
    def pitch(self) -> int:
        """Elements of a copied row."""
        return self.columns.steps(known(self.loops.channel.extent))

    @property
    def copied(self) -> int:
        """Elements of the copy, and what vectors at its end reach beyond it."""
        return (
            self.rows.steps(self.band * self.pixels) * self.pitch
            + self.width * max(1, self.columns.along)
            + 2 * self.lanes
        )

    @property
    def tiles(self) -> RowSplit:
        """The tiles of a plane."""
        assert self.split is not None
        return self.split

    @property
    def bands(self) -> int:
        """Bands of a plane."""
        return -(-self.tiles.count // self.band)

    @property
    def grid(self) -> tuple[Dim, ...]:
        """Extents of the grid, slowest first: outer axes, blocks of planes, blocks of bands."""
        planes = d.ceil_div(self.loops.line.extent, self.blocks.lines) if self.loops.line is not None else 1
        return (*(axis.extent for axis in self.loops.outer), planes, -(-self.bands // self.blocks.panels))


def plan_planes(view: DispatchView, machine: Machine) -> PlanesPlan | Refusal:
    """The plan of a window whose lanes run along the pixels of a line, or why there is none."""
    loops = window_loops(view, planes=True)
    return loops if isinstance(loops, Refusal) else planes_of(loops, machine)


def planes_of(loops: WindowLoops, machine: Machine) -> PlanesPlan | Refusal:
    """The same of loops whose lanes are pixels."""
    access, line, filter_ = loops.images[0].access, loops.pixel, loops.filter
    ways = _ways(loops)
    if ways is None or line is None or len(loops.images) > 1:
        return Refusal("planes", "lines and pixels do not step over one image by whole numbers known now")
    if filter_ is not None and not is_uniform(loops):
        return Refusal("filter-per-pixel", "the filter differs between pixels")
    if filter_ is not None and set(line.loops) & used_dims(filter_.map):
        return Refusal("filter-per-pixel", "the filter differs between lines")
    copied = replace(loops, images=(Image(_copied_access(loops, ways), 0, loops.channel.extent),), skips_padding=False)
    plan = plan_window(copied, machine, by_line=True)
    return plan if isinstance(plan, Refusal) else _banded(plan, access, ways, machine)


def _ways(loops: WindowLoops) -> tuple[Direction, Direction] | None:
    """The directions down the lines and along the pixels; None where they are not plain, or something else moves in the
    window."""
    access, lane = loops.images[0].access, loops.channel
    along = [axis for axis in loops.down if axis.inner in window_along(loops.root, loops.image_position, lane.inner)]
    if loops.pixel is None or loops.across is None or len(loops.down) > 1 or len(along) != len(loops.down):
        return None
    if not isinstance(loops.channel.extent, int) or not isinstance(loops.pixel.extent, int):
        return None
    moving = [loop for loop, extent in enumerate(loops.extents) if extent != 1]
    rows = direction(access, loops.pixel, loops.across, moving)
    columns = direction(access, lane, along[0] if along else None, moving)
    if rows is None or columns is None or columns.stride != 1:
        return None
    return (rows, columns) if len(access.bounds) == sum(way.size is not None for way in (rows, columns)) else None


def _copied_access(loops: WindowLoops, ways: tuple[Direction, Direction]) -> LinearAccess:
    (rows, columns), pitch = ways, ways[1].steps(known(loops.channel.extent))
    steps = [
        (loops.pixel, rows.along * pitch),
        (loops.across, rows.window * pitch),
        (loops.channel, columns.along),
    ]
    steps += [(axis, columns.window) for axis in loops.down]
    return LinearAccess(
        loops.images[0].access.source, Linear({axis.inner: step for axis, step in steps if axis is not None})
    )


def _banded(
    plan: WindowPlan, original: LinearAccess, ways: tuple[Direction, Direction], machine: Machine
) -> PlanesPlan | Refusal:
    """The plan with its copy and its grid."""
    given: dict[str, Any] = {field.name: getattr(plan, field.name) for field in fields(plan)}
    image = "planes" if plan.loops.computed is None else "evaluated planes"
    given |= {"notes": {**plan.notes, "image": image}, "blocks": Blocks(1, 1, 1, False)}
    whole = PlanesPlan(**given, original=original, rows=ways[0], columns=ways[1], band=1)
    count, sizes = (
        whole.tiles.count,
        [replace(whole, band=1 + n).copied * BYTES[plan.loops.dtype] for n in range(whole.tiles.count)],
    )
    if sizes[0] > machine.l2_bytes // 4 and plan.loops.computed is None:
        return Refusal("scratch", "the lines under a tile do not fit the scratch")
    band = max(1, sum(size <= 2 * machine.l1_bytes for size in sizes))
    whole = replace(whole, band=-(-count // -(-count // band)))
    loops, outer = plan.loops, 1
    for axis in loops.outer:  # a batch known at run time may be 1, and must be shared out even then
        outer *= axis.extent if isinstance(axis.extent, int) else 1
    lines = loops.line.extent if loops.line is not None else 1
    work = 8 * ways[0].positions * ways[1].positions * known(loops.channel.extent) * whole.band * plan.pixels
    blocks = BlockedWork(
        outer, lines if isinstance(lines, int) else 1, 1, whole.bands, work, 0, 0, serial=loops.view.serial
    )
    whole = replace(whole, blocks=choose_blocks(blocks, machine))
    return replace(whole, workgroups=d.product(whole.grid))


class PlanesKernel(WindowKernel):
    """Builds the kernel of a plan over planes."""

    def __init__(self, plan: PlanesPlan, kernel: KernelBuilder) -> None:
        super().__init__(plan, kernel)
        self.planes = plan
        memory, shape = kernel.scratch(self.loops.dtype, plan.copied), (plan.pitch, plan.lanes)
        self.copy = PlaneCopy(kernel, self._source(), plan.original, plan.rows, memory, shape)
        self.first: Operand = 0

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
        """From the first line of the band."""
        kernel, access = self.kernel, tile.image.access
        line = kernel.mul(kernel.sub(tile.start, self.first), int_stride(access, self.loops.pixel))
        return kernel.add(line, kernel.mul(tile.panel, self.plan.width * int_stride(access, self.loops.channel)))

    def workgroup(self, number: Operand) -> tuple[Operand, ...]:
        """Planes outside, bands of tiles inside."""
        plan, kernel, line = self.planes, self.kernel, self.loops.line
        at = self.buffers.coordinates(number, plan.grid)
        outer = dict(zip(self.loops.outer, at, strict=False))
        planes = block_of(
            kernel, at[-2], plan.blocks.lines, self.buffers.operand(line.extent if line is not None else 1)
        )
        bands = block_of(kernel, at[-1], plan.blocks.panels, plan.bands)

        def plane(i: Operand) -> tuple[()]:
            here = {**outer, line: i} if line is not None else outer
            self.filters.enter(here, (0, 1))
            kernel.loop(*bands, 1, partial(self._band, here))
            return ()

        kernel.loop(*planes, 1, plane)
        return ()

    def _band(self, outer: dict[Axis, Operand], band: Operand) -> tuple[()]:
        """Copy the lines under some tiles, then make the tiles."""
        plan, kernel = self.planes, self.kernel
        begin = kernel.mul(band, plan.band)
        end = kernel.min(kernel.add(begin, plan.band), plan.tiles.count)
        self.first = first_of(kernel, plan.tiles, begin)
        lines = kernel.sub(first_of(kernel, plan.tiles, end), self.first)
        self.copy.fill(outer, (self.first, lines), plan.columns)
        for tiles in split_tiles(plan.tiles):
            one = self.pixels(outer, tiles.height)
            tiles.each(
                kernel,
                lambda t, start, one=one: self.panels(one.of(start=start), (0, known(plan.panel_count))),
                (begin, end),
            )
        return ()
