"""What is decided about a convolution in narrow groups: which outputs and which image channels the lanes of a vector
are.

    out[.., pixel, group, o] += sum over window, c of image[.., pixel * stride + window * dilation - low, group, c] *
    filter[window, c, group, o]

Vectors run along (group, o), which is contiguous: a vector holds several groups, or a part of one. A panel is the
fewest whole vectors that are also whole groups, so that all panels are alike. For a step `c` the lanes of a group need
the same image channel: one channel is broadcast where a vector lies in one group, else the channels of its groups are
loaded once and dealt out in registers.

The image under some lines is copied to scratch, panel by panel, with its padding: few channels of many pixels would
otherwise meet in few sets of the first-level cache (at 256 channels a pixel, direct reads ran at 60 % of this), and no
pixel needs an edge check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm

from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.operand_access import LinearAccess
from fuseline.analysis.structured import (
    Kind,
    StructuredOp,
    is_projected_permutation,
    kind,
    multiply_add_operands,
    used_dims,
)
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.emit.packing import PackedColumns, packed_groups
from fuseline.targets.cpu.families.contraction.access import linear_access
from fuseline.targets.cpu.families.contraction.plan import unsupported_members
from fuseline.targets.cpu.families.contraction.problem import Axis, Operand, is_packable_constant
from fuseline.targets.cpu.families.contraction.results import ResultPath, result_paths
from fuseline.targets.cpu.families.directions import Direction, direction
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.families.window.plan import MOST_PIXELS, Walk, walk_of
from fuseline.targets.cpu.isa.core_rates import LINE_BYTES
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.cpu.tiles import MAX_ROWS, BlockProblem, Blocks, RowSplit, cached_rows, choose_blocks, split_rows
from fuseline.targets.target import Refusal

MOST_VECTORS = 4
"""Vectors of a panel: each has code of its own."""

MOST_STEPS = 16
"""Channels per group whose steps are written out, as dealing them out in registers asks for."""

MOST_COPIED_BYTES = 128 * 1024
"""Scratch for the copied part of the image: a quarter of a second-level cache."""


@dataclass(frozen=True)
class GroupedProblem:
    """The roles of the loops and operands. `channel` is (group, output in group), `inner` the reduction over the
    channels of a group; `rows` and `columns` are the directions of the image: down the lines and window rows, and along
    pixels and window columns.
    """

    view: DispatchView
    root: StructuredOp
    dtype: str
    image: LinearAccess
    filter: Operand
    channel: Axis
    inner: Axis
    walk: Walk
    rows: Direction
    columns: Direction

    @property
    def per_group(self) -> int:
        """Outputs of a group."""
        return _int(self.channel.sizes[1])

    @property
    def steps(self) -> int:
        """Image channels of a group."""
        return _int(self.inner.extent)

    @property
    def outputs(self) -> int:
        """Channels of the result."""
        return _int(self.channel.extent)

    @property
    def lines(self) -> int:
        """Lines of the result."""
        return _int(self.walk.line.extent) if self.walk.line is not None else 1

    @property
    def pixels(self) -> int:
        """Pixels of a line of the result."""
        return _int(self.walk.pixel.extent) if self.walk.pixel is not None else 1


@dataclass(frozen=True, kw_only=True)
class GroupedPlan(Plan):
    """A problem with its tile (`pixels` by one vector of `lanes`), its panels of `groups` groups in `vectors` vectors,
    and its grid.

    The part of the image under `lines` lines and `bunch` panels is copied before it is used. A workgroup has
    `blocks.lines` times `blocks.panels` such parts.
    """

    problem: GroupedProblem
    pixels: int
    lanes: int
    vectors: int
    groups: int
    lines: int
    bunch: int
    blocks: Blocks
    packed: PackedColumns
    paths: tuple[ResultPath, ...]

    @property
    def width(self) -> int:
        """Outputs per panel."""
        return self.vectors * self.lanes

    @property
    def channels(self) -> int:
        """Image channels per panel."""
        return self.groups * self.problem.steps

    @property
    def pitch(self) -> int:
        """Image channels per copied pixel."""
        return self.bunch * self.channels

    @property
    def bunches(self) -> int:
        """Bunches of panels, the last one perhaps of fewer groups."""
        return -(-self.problem.outputs // (self.bunch * self.width))

    @property
    def line_blocks(self) -> int:
        """Parts of `lines` lines."""
        return -(-self.problem.lines // self.lines)

    @property
    def split(self) -> RowSplit:
        """The tiles of a line."""
        return split_rows(self.problem.pixels, self.pixels)

    @property
    def copied(self) -> int:
        """Elements of the copied part of the image, and what vectors at its end reach beyond it."""
        return _copied(self.problem, self.lines, self.pitch) + 2 * self.lanes

    @property
    def grid(self) -> tuple[Dim, ...]:
        """Extents of the grid, slowest first: outer axes, line blocks, panel blocks."""
        outer = (axis.extent for axis in self.problem.walk.outer)
        return (*outer, -(-self.line_blocks // self.blocks.lines), -(-self.bunches // self.blocks.panels))

    def sources(self, v: int) -> tuple[int, ...]:
        """The image channel, from the first of the panel's, behind each lane of vector `v` at step 0."""
        return sources_of(v, self.lanes, self.problem.per_group, self.problem.steps)


def _int(size: Dim) -> int:
    assert isinstance(size, int)
    return size


def _copied(problem: GroupedProblem, lines: int, channels: int) -> int:
    return problem.rows.steps(lines) * problem.columns.steps(problem.pixels) * channels


def sources_of(v: int, lanes: int, per_group: int, steps: int) -> tuple[int, ...]:
    """The image channel behind each lane of vector `v` of a panel, at step 0.

    >>> sources_of(0, 8, 4, 4), sources_of(1, 8, 12, 12)
    ((0, 0, 0, 0, 4, 4, 4, 4), (0, 0, 0, 0, 12, 12, 12, 12))
    """
    return tuple((v * lanes + lane) // per_group * steps for lane in range(lanes))


def grouped_problem(view: DispatchView) -> GroupedProblem | Refusal:
    """The root of `view` as a convolution in groups, or why it is none."""
    root = view.root_view
    sides = multiply_add_operands(root.op) if root is not None else None
    if root is None or sides is None or kind(root.op) is not Kind.CONVOLUTION:
        return Refusal("not-a-convolution", "the root is no convolution")
    dtype = dtype_of(root.op.results[0].type)
    if dtype not in ("f32", "f64") or any(dtype_of(value.type) != dtype for value in root.inputs):
        return Refusal("element-type", "groups are for f32 and f64 throughout")
    extents = root.loops(view.shapes)
    if any(extent == 0 for extent in extents):
        return Refusal("empty", "a loop never runs")
    image = next(i for i, map_ in enumerate(root.input_maps) if not is_projected_permutation(map_))
    position = next(side for side in sides if side != image)
    loops = _loops(root, (image, position), extents)
    access = linear_access(view, root.inputs[image], root.input_maps[image], extents)
    filter_ = Operand(root.inputs[position], root.input_maps[position], None)
    if loops is None or access is None or not _lies_in_groups(access, loops, extents):
        return Refusal("not-in-groups", "the channels of a group do not lie side by side in image and result")
    if not is_packable_constant(view, filter_):
        return Refusal("filter-layout", "the filter is no constant")
    return _problem(view, root, (dtype, extents), (access, filter_), loops)


def _loops(root: StructuredOp, sides: tuple[int, int], extents: Sequence[Dim]) -> tuple[int, int, int] | None:
    """The loops of the group, of the output in it, and of the channel in it: the last two of the result, and one
    reduced beside the window."""
    image, filter_, out = (
        used_dims(map_) for map_ in (*(root.input_maps[side] for side in sides), root.output_maps[0])
    )
    written = [
        expr.position
        for expr in root.output_maps[0].results
        if isinstance(expr, AffineDimExpr) and extents[expr.position] != 1
    ]
    if len(written) < 2 or set(root.parallel) - {loop for loop in root.parallel if extents[loop] == 1} != set(written):
        return None
    group, output = written[-2:]
    inner = [
        e.position
        for e in root.input_maps[sides[0]].results
        if isinstance(e, AffineDimExpr) and e.position in root.reduction
    ]
    if group not in image & filter_ & out or output in image or output not in filter_ or len(inner) != 1:
        return None
    return group, output, inner[0]


def _lies_in_groups(access: LinearAccess, loops: tuple[int, int, int], extents: Sequence[Dim]) -> bool:
    group, output, inner = loops
    padded = {loop for bound in access.bounds for loop in bound.coordinate.terms}
    known = all(isinstance(extents[loop], int) for loop in loops)
    return (
        known
        and access.stride(inner) == 1
        and access.stride(group) == extents[inner]
        and padded.isdisjoint((group, output, inner))
    )


def _problem(
    view: DispatchView, root: StructuredOp, types: tuple[str, tuple[Dim, ...]], operands: tuple[LinearAccess, Operand],
    loops: tuple[int, int, int],
) -> GroupedProblem | Refusal:  # fmt: skip
    (dtype, extents), (access, filter_), (group, output, inner) = types, operands, loops
    written = [expr.position for expr in root.output_maps[0].results if isinstance(expr, AffineDimExpr)]
    pixels = [loop for loop in written if loop not in loops and extents[loop] != 1]
    if any(loop in used_dims(filter_.map) for loop in pixels):
        return Refusal("filter-per-pixel", "the filter differs between pixels")
    walk = walk_of([access], extents, pixels, [loop for loop in root.reduction if loop != inner])
    if isinstance(walk, Refusal):
        return walk
    if walk.across is None or len(walk.down) > 1:
        return Refusal("no-window", "the window does not slide down lines and along pixels")
    if access.bounds and access.pad != 0:
        return Refusal("padding", "the padding is not zero")
    moving = [loop for loop, extent in enumerate(extents) if extent != 1]
    rows, columns = (
        direction(access, walk.line, walk.down[0] if walk.down else None, moving),
        direction(access, walk.pixel, walk.across, moving),
    )
    if rows is None or columns is None or len(access.bounds) > sum(way.size is not None for way in (rows, columns)):
        return Refusal("window-map", "the window does not step down lines and along pixels by whole numbers known now")
    channels = Axis((group, output), (extents[group], extents[output]))
    return GroupedProblem(
        view, root, dtype, access, filter_, channels, Axis((inner,), (extents[inner],)), walk, rows, columns
    )


def plan_grouped(problem: GroupedProblem, machine: Machine, pixels: int | None = None) -> GroupedPlan | Refusal:
    """The plan of a problem, or why this is not the way to do it. `pixels` stands in for the chosen ones, to measure
    others."""
    view, lanes = problem.view, machine.lanes(problem.dtype)
    if unsupported_members(view, problem.root.op):
        return Refusal("second-reduction", "an op reduces beside the root")
    paths = result_paths(view)
    if isinstance(paths, Refusal):
        return paths
    width = lcm(problem.per_group, lanes)
    refused = _refused(problem, lanes, width, machine)
    if refused is not None:
        return refused
    groups = width // problem.per_group
    bunch = _bunch(problem, groups * problem.steps, -(-problem.outputs // width))
    packed, lines = _packed(problem, groups), _lines(problem, bunch * groups * problem.steps, machine)
    tile = pixels or _pixels(problem, machine)
    argument = view.tensors.index(problem.filter.value)  # pyright: ignore[reportArgumentType]
    plan = GroupedPlan(
        view=view, workgroups=0, constant_layouts={argument: packed.layout}, problem=problem, pixels=tile, lanes=lanes,
        vectors=width // lanes,
        groups=groups, lines=lines, bunch=bunch, blocks=_blocks(problem, lines, bunch * width, machine), packed=packed,
        paths=tuple(paths),
        notes={"tile": f"{tile}x{lanes}", "panel": f"{groups} groups", "lines": lines},
    )  # fmt: skip
    return replace(plan, workgroups=d.product(plan.grid))


def _refused(problem: GroupedProblem, lanes: int, width: int, machine: Machine) -> Refusal | None:
    stride = problem.image.stride(problem.walk.pixel.inner) if problem.walk.pixel is not None else 0
    if problem.per_group >= 2 * lanes and cached_rows(_int(stride) * BYTES[problem.dtype], machine) >= MAX_ROWS:
        return Refusal("wide-groups", f"groups of {problem.per_group} fill register tiles of their own")
    if width // lanes > MOST_VECTORS:
        return Refusal(
            "uneven-groups", f"groups of {problem.per_group} fit {lanes} lanes only every {width // lanes} vectors"
        )
    dealt = [sources_of(v, lanes, problem.per_group, problem.steps) for v in range(width // lanes)]
    if any(len(set(sources)) > 1 for sources in dealt) and problem.steps > MOST_STEPS:
        return Refusal("long-groups", f"{problem.steps} channels of a group are dealt out over the lanes")
    if any(len(set(sources)) > 2 and sources[-1] - sources[0] + problem.steps > 2 * lanes for sources in dealt):
        return Refusal("spread-groups", "the channels behind a vector do not fit two vectors")
    size = BYTES[problem.dtype]
    if (
        _copied(problem, 1, max(LINE_BYTES // size, width // problem.per_group * problem.steps)) * size
        > MOST_COPIED_BYTES
    ):
        return Refusal("scratch", "the image under one line does not fit the scratch")
    return None


def _pixels(problem: GroupedProblem, machine: Machine) -> int:
    """Pixels of a tile: accumulators, one window row of the filter and the column at hand stay in registers."""
    return max(2, min(MOST_PIXELS, machine.vector_registers - 2 - min(problem.columns.positions, 5)))


def _bunch(problem: GroupedProblem, channels: int, panels: int) -> int:
    """Panels whose channels are copied together: as many as lie in a cache line, which comes whole."""
    return min(panels, max(1, LINE_BYTES // (channels * BYTES[problem.dtype])))


def _lines(problem: GroupedProblem, channels: int, machine: Machine) -> int:
    """Lines whose part of the image stays near the core: what two parts share is copied twice. Parts as equal as can
    be."""
    lines = 1
    while (
        lines < problem.lines and _copied(problem, lines + 1, channels) * BYTES[problem.dtype] <= 2 * machine.l1_bytes
    ):
        lines += 1
    return -(-problem.lines // -(-problem.lines // lines))


def _blocks(problem: GroupedProblem, lines: int, width: int, machine: Machine) -> Blocks:
    outer = 1
    for axis in problem.walk.outer:  # a batch known at run time may be 1, and must be shared out even then
        outer *= axis.extent if isinstance(axis.extent, int) else 1
    window = problem.rows.positions * problem.columns.positions * problem.steps
    work = 2 * window * problem.pixels * lines * width
    parts, panels = -(-problem.lines // lines), -(-problem.outputs // width)
    return choose_blocks(BlockProblem(outer, parts, 1, panels, work, 0, 0, serial=problem.view.serial), machine)


def _packed(problem: GroupedProblem, groups: int) -> PackedColumns:
    filter_, walk = problem.filter, problem.walk
    shape = [_int(size) for size in problem.view.shapes.dims(filter_.value)]
    loops = [expr.position if isinstance(expr, AffineDimExpr) else None for expr in filter_.map.results]
    assert walk.across is not None
    reduction = [*(axis.inner for axis in walk.down), problem.inner.inner, walk.across.inner]
    return packed_groups(shape, loops, problem.channel.loops, reduction, groups)
