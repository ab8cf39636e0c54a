"""What is decided about a root that slides a window over an image channel by channel: depthwise convolution and
pooling.

    out[outer, line, pixel, channel] = combine over window of image[.., pixel * stride + window * dilation - low,
    channel] (* filter[window, channel])

Vectors run along `channel`, which is contiguous in the image. A tile is several pixels of a line: neighbouring pixels
share image columns, so each column is loaded once for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.structured import used_dims
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.emit.packing import PackedColumns, packed_columns
from fuseline.targets.cpu.families.contraction.plan import unsupported_members
from fuseline.targets.cpu.families.contraction.problem import Axis, estimated, is_packable_constant
from fuseline.targets.cpu.families.contraction.results import ResultPath, result_paths
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.families.window.problem import WindowProblem, lies_along
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.cpu.tiles import BlockProblem, Blocks, RowSplit, choose_blocks, split_rows
from fuseline.targets.target import PackedLayout, Refusal

MOST_PIXELS = 12
"""Pixels of a tile: each loads one more column of the image and shares the others, so wider tiles gain little and are
more code."""

MOST_STAGED_BYTES = 64 * 1024
"""Scratch for panels of a filter that only the run knows: beside the image, well within a second-level cache."""

MOST_VECTORS = 8
"""Vectors of a tile whose pixels share nothing: as many accumulators hide the latency, and neighbouring channels are
neighbours in memory."""


@dataclass(frozen=True, kw_only=True)
class WindowPlan(Plan):
    """A problem with its tile (`pixels` by `vectors` of `lanes` channels) and blocks (`lines`, 1, channel panels).

    `columns_first`: columns of the window are combined once for all pixels that see them (`columns.py`).
    """

    problem: WindowProblem
    pixels: int
    vectors: int
    lanes: int
    blocks: Blocks
    packed: PackedColumns | None
    paths: tuple[ResultPath, ...]
    columns_first: bool = False

    @property
    def width(self) -> int:
        """Channels per panel."""
        return self.vectors * self.lanes

    @property
    def panel_count(self) -> Dim:
        """Panels of channels; none reaches over the end of a part of the image."""
        return self.panels_before(len(self.problem.images))

    def panels_before(self, part: int) -> Dim:
        """Panels of the parts of the image before number `part`."""
        total: Dim = 0
        for image in self.problem.images[:part]:
            total = d.add(total, d.ceil_div(image.channels, self.width))
        return total

    @property
    def split(self) -> RowSplit | None:
        """Tiles along the line; None where its length is only known at run time."""
        pixel = self.problem.pixel
        extent = pixel.extent if pixel is not None else 1
        return split_rows(extent, self.pixels) if isinstance(extent, int) else None

    @property
    def stages_filter(self) -> bool:
        """Whether the filter goes through scratch: only the run knows it, and it does not lie as vectors want it."""
        return self.packed is None and not reads_in_place(self.problem)

    @property
    def staged_panels(self) -> int:
        """Panels of the filter that are in scratch together: those of a workgroup."""
        return self.blocks.panels

    @property
    def grid(self) -> tuple[Dim, ...]:
        """Extents of the grid, slowest first: outer axes, line blocks, panel blocks."""
        line = self.problem.line
        lines = d.ceil_div(line.extent, self.blocks.lines) if line is not None else 1
        return (*(axis.extent for axis in self.problem.outer), lines, d.ceil_div(self.panel_count, self.blocks.panels))


def plan_window(problem: WindowProblem, machine: Machine, tile: tuple[int, int] | None = None) -> WindowPlan | Refusal:
    """The plan of a problem, or why its results cannot be written. `tile` stands in for the chosen pixels and vectors,
    to measure others."""
    view = problem.view
    if unsupported_members(view, problem.root.op):
        return Refusal("second-reduction", "an op reduces beside the root")
    paths = result_paths(view)
    if isinstance(paths, Refusal):
        return paths
    lanes = machine.lanes(problem.dtype)
    columns_first = shares_columns(problem, machine)
    pixels, vectors = tile or _tile(problem, lanes, machine)
    packed = _packed(problem, vectors * lanes)
    staged = packed is None and not reads_in_place(problem)
    refused = refused_staging(problem, vectors * lanes) if staged else None
    if refused is not None:
        return refused
    plan = WindowPlan(
        view=view, workgroups=0, constant_layouts=layout_of(problem, packed), problem=problem, pixels=pixels,
        vectors=vectors, lanes=lanes, blocks=window_blocks(problem, vectors * lanes, machine, staged=staged),
        packed=packed, paths=tuple(paths), columns_first=columns_first,
        notes={"tile": f"{pixels}x{vectors * lanes}", "image": _image_note(problem), **filter_note(packed, problem)},
    )  # fmt: skip
    return replace(plan, workgroups=d.product(plan.grid))


def layout_of(problem: WindowProblem, packed: PackedColumns | None) -> dict[int, PackedLayout]:
    """How the bytes of a filter known when compiling must lie, by its position."""
    if packed is None or problem.filter is None:
        return {}
    return {problem.view.tensors.index(problem.filter.value): packed.layout}  # pyright: ignore[reportArgumentType]


def reads_in_place(problem: WindowProblem) -> bool:
    """Whether vectors of the filter, if there is one, can be loaded as they lie, or are one element in all lanes."""
    if problem.filter is None or problem.groups is not None:
        return problem.filter is None
    return lies_along(problem.filter, problem.channel.inner) or is_uniform(problem)


def is_uniform(problem: WindowProblem) -> bool:
    """Whether a tap of the filter is the same element for all lanes."""
    filter_ = problem.filter
    access = filter_.access if filter_ is not None else None
    return access is not None and not access.bounds and access.stride(problem.channel.inner) == 0


def filter_note(packed: PackedColumns | None, problem: WindowProblem) -> dict[str, str]:
    """What the report shows of a filter that is staged."""
    return {"filter": "staged"} if packed is None and not reads_in_place(problem) else {}


def refused_staging(problem: WindowProblem, width: int) -> Refusal | None:
    """Why panels of `width` channels of the filter cannot be evaluated into scratch."""
    assert problem.filter is not None
    own = {loop for axis in (problem.line, problem.pixel) if axis is not None for loop in axis.loops}
    if len(problem.images) > 1:
        return Refusal("filter-layout", "panels of the filter would reach over the ends of the parts of the image")
    if own & used_dims(problem.filter.map):
        return Refusal("filter-per-pixel", "the filter differs between pixels")
    if not all(isinstance(axis.extent, int) for axis in problem.filter_axes):
        return Refusal(
            "filter-size",
            "the size of the window is only known at run time, and its filter does not lie as vectors want it",
        )
    if panel_steps(problem) * width * BYTES[problem.dtype] > MOST_STAGED_BYTES:
        return Refusal("filter-size", "a panel of the filter does not fit the scratch")
    return None


def known_extent(axis: Axis) -> int:
    """The extent of an axis that is not a matter of the run."""
    assert isinstance(axis.extent, int)
    return axis.extent


def panel_steps(problem: WindowProblem) -> int:
    """Elements of the filter behind a channel of the result."""
    return prod(known_extent(axis) for axis in problem.filter_axes)


def _image_note(problem: WindowProblem) -> str:
    if len(problem.images) > 1:
        return "segments"
    return "padded" if any(image.access.bounds for image in problem.images) else "plain"


def _tile(problem: WindowProblem, lanes: int, machine: Machine) -> tuple[int, int]:
    """Pixels and vectors of a tile."""
    channels = problem.channel.extent
    limit = -(-channels // lanes) if isinstance(channels, int) else 8
    if problem.pixel is None or (problem.filter is None and not _overlaps(problem)):
        vectors = max(1, min(MOST_VECTORS, limit))
        return 1 if problem.pixel is None else max(1, MOST_VECTORS // vectors), vectors
    return window_pixels(problem, machine), 1


def _overlaps(problem: WindowProblem) -> bool:
    """Whether neighbouring pixels see the same columns of the image."""
    taps = estimated(problem.across.extent) if problem.across is not None else 1
    accesses = [image.access for image in problem.images]
    steps = [
        (access.stride(problem.pixel.inner), access.stride(problem.across.inner) if problem.across is not None else 0)
        for access in accesses
        if problem.pixel
    ]
    return any(
        isinstance(pixel, int) and isinstance(across, int) and abs(pixel) < taps * abs(across)
        for pixel, across in steps
    )


def window_pixels(problem: WindowProblem, machine: Machine) -> int:
    """Pixels of a tile one vector wide: accumulators, one window row of the filter and the column at hand stay in
    registers."""
    taps = estimated(problem.across.extent) if problem.across is not None else 1
    if shares_columns(problem, machine):
        return _pixels_by_columns(problem, machine)
    room = machine.vector_registers - 2 - (min(taps, 5) if problem.filter is not None else 0)
    return max(2, min(MOST_PIXELS, room))


def shares_columns(problem: WindowProblem, machine: Machine) -> bool:
    """Whether it takes fewer steps to combine columns before pixels: for ops that may be done in any order, where
    pixels share columns."""
    across, down = problem.across, 1
    for axis in problem.down:
        down *= estimated(axis.extent)
    if across is None or problem.filter is not None or not problem.any_order or not _overlaps(problem):
        return False
    taps, pixels = estimated(across.extent), _pixels_by_columns(problem, machine)
    return _columns(problem, pixels) * down + pixels * (taps - 1) < pixels * taps * down


def _pixels_by_columns(problem: WindowProblem, machine: Machine) -> int:
    """The most pixels whose columns stay in registers, beside what a maximum takes."""
    room = machine.vector_registers - 3
    return max([2, *(n for n in range(2, MOST_PIXELS + 1) if _columns(problem, n) <= room)])


def _columns(problem: WindowProblem, pixels: int) -> int:
    """Columns of the image that so many pixels see."""
    assert problem.pixel is not None and problem.across is not None
    access, taps = problem.images[0].access, estimated(problem.across.extent)
    steps = (access.stride(problem.pixel.inner), access.stride(problem.across.inner))
    return len(
        {pixel * estimated(steps[0]) + tap * estimated(steps[1]) for pixel in range(pixels) for tap in range(taps)}
    )


def _packed(problem: WindowProblem, width: int) -> PackedColumns | None:
    """The filter in panels, where those are the panels of every part of the image."""
    filter_ = problem.filter
    starts = [image.start for image in problem.images]
    whole = all(isinstance(start, int) and start % width == 0 for start in starts)
    if filter_ is None or not whole or not is_packable_constant(problem.view, filter_):
        return None
    shape = [size for size in problem.view.shapes.dims(filter_.value) if isinstance(size, int)]
    loops = [expr.position if isinstance(expr, AffineDimExpr) else None for expr in filter_.map.results]
    if problem.channel.inner not in loops:
        return None
    parallel = [axis for axis in (*problem.outer, problem.line, problem.pixel) if axis is not None]
    outer = [loop for axis in parallel for loop in axis.loops if loop in loops]
    return packed_columns(shape, loops, problem.channel.inner, outer, [axis.inner for axis in problem.reduction], width)


def window_blocks(problem: WindowProblem, width: int, machine: Machine, *, staged: bool) -> Blocks:
    """Lines and panels of `width` channels per workgroup. A filter that is `staged` is evaluated by each of them."""
    outer, window = 1, 1
    for axis in problem.outer:  # a batch known at run time may be 1, and must be shared out even then
        outer *= axis.extent if isinstance(axis.extent, int) else 1
    for axis in problem.reduction:
        window *= estimated(axis.extent)
    pixels = estimated(problem.pixel.extent) if problem.pixel is not None else 1
    lines = estimated(problem.line.extent) if problem.line is not None else 1
    panels = -(-estimated(problem.channel.extent) // width)
    # a window step costs as much as four multiply-adds of a contraction: it is bound by loads
    work, serial = 8 * window * pixels * width, problem.view.serial
    blocks = choose_blocks(
        BlockProblem(outer, lines, 1, panels, work, 0, 0, repacks_rhs=staged, serial=serial), machine
    )
    most = MOST_STAGED_BYTES // (panel_steps(problem) * width * BYTES[problem.dtype]) if staged else blocks.panels
    return replace(blocks, panels=min(blocks.panels, most))
