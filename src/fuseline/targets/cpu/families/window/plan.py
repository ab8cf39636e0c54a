"""What is decided about a root that slides a window over an image channel by channel: depthwise convolution and
pooling.

    out[outer, line, pixel, channel] = combine over window of image[.., pixel * stride + window * dilation - low,
    channel] (* filter[window, channel])

Vectors run along `channel`, which is contiguous in the image. A tile is several pixels of a line: neighbouring pixels
share image columns, so each column is loaded once for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fuseline.analysis.indexing_maps import loops_of, used_dims
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.emit.packing import PackedColumns, packed_columns
from fuseline.targets.cpu.families.contraction.axes import Operand, estimated
from fuseline.targets.cpu.families.contraction.packable_constants import is_packable_constant
from fuseline.targets.cpu.families.contraction.results import ResultPath, lone_root_paths
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.families.window.blocks import MOST_STAGED_BYTES, panel_steps, window_blocks
from fuseline.targets.cpu.families.window.loops import WindowLoops, lies_along
from fuseline.targets.cpu.families.window.shared_form import SharedForm
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.cpu.tiles import Blocks, RowSplit, split_in_tiles, split_rows
from fuseline.targets.target import Refusal
from fuseline.weight_layouts import PackedLayout

MOST_PIXELS = 12
"""Pixels of a tile: each loads one more column of the image and shares the others, so wider tiles gain little and are
more code."""

MOST_VECTORS = 8
"""Vectors of a tile whose pixels share nothing: as many accumulators hide the latency, and neighbouring channels are
neighbours in memory."""


@dataclass(frozen=True, kw_only=True)
class WindowPlan(Plan):
    """The loops with their tile (`pixels` by `vectors` of `lanes` channels) and blocks (`lines`, 1, channel panels).

    `columns_first`: columns of the window are combined once for all pixels that see them (`columns.py`). `form`: what
    the kernel has in common with others that are the same code.
    """

    loops: WindowLoops
    pixels: int
    vectors: int
    lanes: int
    blocks: Blocks
    packed: PackedColumns | None
    paths: tuple[ResultPath, ...]
    columns_first: bool = False
    form: SharedForm | None = None

    @property
    def width(self) -> int:
        """Channels per panel."""
        return self.vectors * self.lanes

    @property
    def panel_count(self) -> Dim:
        """Panels of channels; none reaches over the end of a part of the image."""
        return self.panels_before(len(self.loops.images))

    def panels_before(self, part: int) -> Dim:
        """Panels of the parts of the image before number `part`."""
        return d.sum_of(d.ceil_div(image.channels, self.width) for image in self.loops.images[:part])

    @property
    def split(self) -> RowSplit | None:
        """Tiles along the line; None where its length is only known at run time."""
        pixel = self.loops.pixel
        extent = pixel.extent if pixel is not None else 1
        if not isinstance(extent, int):
            return None
        return split_rows(extent, self.pixels) if self.form is None else split_in_tiles(extent, self.form.height)

    @property
    def stages_filter(self) -> bool:
        """Whether the filter goes through scratch: only the run knows it, and it does not lie as vectors want it."""
        return self.packed is None and not reads_in_place(self.loops)

    @property
    def staged_panels(self) -> int:
        """Panels of the filter that are in scratch together: those of a workgroup."""
        return self.blocks.panels

    @property
    def grid(self) -> tuple[Dim, ...]:
        """Extents of the grid, slowest first: outer axes, line blocks, panel blocks."""
        line = self.loops.line
        lines = d.ceil_div(line.extent, self.blocks.lines) if line is not None else 1
        return (*(axis.extent for axis in self.loops.outer), lines, d.ceil_div(self.panel_count, self.blocks.panels))


def plan_window(
    loops: WindowLoops, machine: Machine, tile: tuple[int, int] | None = None, *, by_line: bool = False
) -> WindowPlan | Refusal:
    """The plan of a window, or why its results cannot be written. `tile` stands in for the chosen pixels and vectors,
    to measure others; `by_line`: each line may have a filter of its own."""
    view = loops.view
    paths = lone_root_paths(view, loops.root)
    if isinstance(paths, Refusal):
        return paths
    lanes = machine.lanes(loops.dtype)
    columns_first = shares_columns(loops, machine)
    pixels, vectors = tile or _tile(loops, lanes, machine)
    packed = _packed(loops, vectors * lanes)
    staged = packed is None and not reads_in_place(loops)
    refused = refused_staging(loops, vectors * lanes, by_line=by_line) if staged else None
    if refused is not None:
        return refused
    plan = WindowPlan(
        view=view, workgroups=0, constant_layouts=layout_of(loops, packed), loops=loops, pixels=pixels,
        vectors=vectors, lanes=lanes, blocks=window_blocks(loops, (pixels, vectors * lanes), machine, staged=staged),
        packed=packed, paths=tuple(paths), columns_first=columns_first,
        notes={"tile": f"{pixels}x{vectors * lanes}", "image": _image_note(loops), **filter_note(packed, loops)},
    )  # fmt: skip
    return replace(plan, workgroups=d.product(plan.grid))


def layout_of(loops: WindowLoops, packed: PackedColumns | None) -> dict[int, PackedLayout]:
    """How the bytes of a filter known when compiling must lie, by its position."""
    if packed is None or loops.filter is None:
        return {}
    return {loops.view.tensors.index(loops.filter.value): packed.layout}  # pyright: ignore[reportArgumentType]


def reads_in_place(loops: WindowLoops) -> bool:
    """Whether vectors of the filter, if there is one, can be loaded as they lie, or are one element in all lanes."""
    if loops.filter is None or loops.groups is not None:
        return loops.filter is None
    return lies_along(loops.filter, loops.channel.inner) or _lies_uniform(loops.filter, loops.channel.inner)


def _lies_uniform(filter_: Operand, channel: int) -> bool:
    return filter_.access is not None and not filter_.bounds and filter_.access.stride(channel) == 0


def is_uniform(loops: WindowLoops) -> bool:
    """Whether a tap of the filter is the same element for all lanes."""
    filter_ = loops.filter
    if filter_ is None:
        return False
    return used_dims(filter_.map).isdisjoint(loops.channel.loops) or _lies_uniform(filter_, loops.channel.inner)


def filter_note(packed: PackedColumns | None, loops: WindowLoops) -> dict[str, str]:
    """What the report shows of a filter that is staged."""
    return {"filter": "staged"} if packed is None and not reads_in_place(loops) else {}


def refused_staging(loops: WindowLoops, width: int, *, by_line: bool = False) -> Refusal | None:
    """Why panels of `width` channels of the filter cannot be evaluated into scratch; `by_line`: for each line anew."""
    assert loops.filter is not None
    axes = (loops.pixel,) if by_line else (loops.line, loops.pixel)
    own = {loop for axis in axes if axis is not None for loop in axis.loops}
    if len(loops.images) > 1:
        return Refusal("filter-layout", "panels of the filter would reach over the ends of the parts of the image")
    if own & used_dims(loops.filter.map):
        return Refusal("filter-per-pixel", "the filter differs between pixels")
    if not all(isinstance(axis.extent, int) for axis in loops.filter_axes):
        return Refusal(
            "filter-size",
            "the size of the window is only known at run time, and its filter does not lie as vectors want it",
        )
    if panel_steps(loops) * width * BYTES[loops.dtype] > MOST_STAGED_BYTES:
        return Refusal("filter-size", "a panel of the filter does not fit the scratch")
    return None


def _image_note(loops: WindowLoops) -> str:
    if len(loops.images) > 1:
        return "segments"
    if any(image.access.borders for image in loops.images):
        return "bordered"
    return "padded" if any(image.access.bounds for image in loops.images) else "plain"


def _tile(loops: WindowLoops, lanes: int, machine: Machine) -> tuple[int, int]:
    """Pixels and vectors of a tile."""
    channels = loops.channel.extent
    limit = -(-channels // lanes) if isinstance(channels, int) else 8
    if loops.pixel is None or (loops.filter is None and not _overlaps(loops)):
        vectors = max(1, min(MOST_VECTORS, limit))
        return 1 if loops.pixel is None else max(1, MOST_VECTORS // vectors), vectors
    return window_pixels(loops, machine), 1


def _overlaps(loops: WindowLoops) -> bool:
    """Whether neighbouring pixels see the same columns of the image."""
    taps = estimated(loops.across.extent) if loops.across is not None else 1
    accesses = [image.access for image in loops.images]
    steps = [
        (access.stride(loops.pixel.inner), access.stride(loops.across.inner) if loops.across is not None else 0)
        for access in accesses
        if loops.pixel
    ]
    return any(
        isinstance(pixel, int) and isinstance(across, int) and abs(pixel) < taps * abs(across)
        for pixel, across in steps
    )


def window_pixels(loops: WindowLoops, machine: Machine) -> int:
    """Pixels of a tile one vector wide: accumulators, one window row of the filter and the column at hand stay in
    registers."""
    taps = estimated(loops.across.extent) if loops.across is not None else 1
    if shares_columns(loops, machine):
        return _pixels_by_columns(loops, machine)
    room = machine.vector_registers - 2 - (min(taps, 5) if loops.filter is not None else 0)
    return max(2, min(MOST_PIXELS, room))


def shares_columns(loops: WindowLoops, machine: Machine) -> bool:
    """Whether it takes fewer steps to combine columns before pixels: for ops that may be done in any order, where
    pixels share columns."""
    across, down = loops.across, 1
    for axis in loops.down:
        down *= estimated(axis.extent)
    if across is None or loops.filter is not None or not loops.any_order or not _overlaps(loops):
        return False
    taps, pixels = estimated(across.extent), _pixels_by_columns(loops, machine)
    return columns_seen(loops, pixels) * down + pixels * (taps - 1) < pixels * taps * down


def _pixels_by_columns(loops: WindowLoops, machine: Machine) -> int:
    """The most pixels whose columns stay in registers, beside what a maximum takes."""
    room = machine.vector_registers - 3
    return max([2, *(n for n in range(2, MOST_PIXELS + 1) if columns_seen(loops, n) <= room)])


def columns_seen(loops: WindowLoops, pixels: int) -> int:
    """Columns of the image that so many pixels see."""
    assert loops.pixel is not None and loops.across is not None
    access, taps = loops.images[0].access, estimated(loops.across.extent)
    steps = (access.stride(loops.pixel.inner), access.stride(loops.across.inner))
    return len(
        {pixel * estimated(steps[0]) + tap * estimated(steps[1]) for pixel in range(pixels) for tap in range(taps)}
    )


def _packed(loops: WindowLoops, width: int) -> PackedColumns | None:
    """The filter in panels, where those are the panels of every part of the image."""
    filter_ = loops.filter
    starts = [image.start for image in loops.images]
    whole = all(isinstance(start, int) and start % width == 0 for start in starts)
    if filter_ is None or not whole or not is_packable_constant(loops.view, filter_):
        return None
    shape = [size for size in loops.view.shapes.dims(filter_.value) if isinstance(size, int)]
    filter_loops = loops_of(filter_.map.results)
    if loops.channel.inner not in filter_loops:
        return None
    parallel = [axis for axis in (*loops.outer, loops.line, loops.pixel) if axis is not None]
    outer = [loop for axis in parallel for loop in axis.loops if loop in filter_loops]
    return packed_columns(
        shape, filter_loops, loops.channel.inner, outer, [axis.inner for axis in loops.reduction], width
    )
