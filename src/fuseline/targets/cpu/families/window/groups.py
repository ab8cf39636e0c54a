"""Windows whose channels mix in narrow groups: which outputs and which image channels the lanes of a vector are.

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
from math import lcm

from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.indexing_maps import is_projected_permutation, loops_of, used_dims
from fuseline.analysis.operand_access import LinearAccess
from fuseline.analysis.strip_shapes import strip_height, strip_shape
from fuseline.analysis.structured import Kind, StructuredOp, kind, multiply_add_operands
from fuseline.dispatch.view import DispatchView
from fuseline.ir.costs import LINE_BYTES
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.emit.packing import PackedColumns, packed_groups
from fuseline.targets.cpu.families.contraction.access import access_segments, plain_access
from fuseline.targets.cpu.families.contraction.axes import Axis, Operand
from fuseline.targets.cpu.families.contraction.packable_constants import is_packable_constant
from fuseline.targets.cpu.families.contraction.results import lone_root_paths
from fuseline.targets.cpu.families.directions import Direction
from fuseline.targets.cpu.families.family import NEVER_RUNS
from fuseline.targets.cpu.families.window.copies import CopiedWindowPlan, extent_of, known, spread_out, ways_of
from fuseline.targets.cpu.families.window.loops import Groups, Image, WindowLoops
from fuseline.targets.cpu.families.window.plan import MOST_PIXELS, filter_note, layout_of, refused_staging
from fuseline.targets.cpu.families.window.sliding_axes import sliding_axes
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.cpu.tiles import MAX_ROWS, Blocks, cached_rows, shared_out
from fuseline.targets.target import Refusal

MOST_VECTORS = 4
"""Vectors of a panel: each has code of its own."""

MOST_STEPS = 16
"""Channels per group whose steps are written out, as dealing them out in registers asks for."""

MOST_COPIED_BYTES = 128 * 1024
"""Scratch for the copied strip of the image: a quarter of a second-level cache."""


_NO_ROOM = Refusal("scratch", "the image under one line does not fit the scratch")


def grouped_window_loops(view: DispatchView) -> WindowLoops | Refusal:
    """The root of `view` as a convolution in groups, or why it is none."""
    root = view.root_view
    sides = multiply_add_operands(root.op) if root is not None else None
    if root is None or sides is None or kind(root.op) is not Kind.CONVOLUTION:
        return Refusal("not-a-convolution", "the root is no convolution")
    dtype = dtype_of(root.op.results[0].type)
    if dtype not in ("f32", "f64") or any(dtype_of(value.type) != dtype for value in root.inputs):
        return Refusal("element-type", "groups are for f32 and f64 throughout")
    extents = root.loops(view.shapes)
    if 0 in extents:
        return NEVER_RUNS
    image = next(i for i, map_ in enumerate(root.input_maps) if not is_projected_permutation(map_))
    position = next(side for side in sides if side != image)
    loops = _loops(root, (image, position), extents)
    access = plain_access(access_segments(view, root.inputs[image], root.input_maps[image], extents, borders=True))
    filter_ = Operand(root.inputs[position], root.input_maps[position], None)
    if loops is None or access is None or not _lies_in_groups(access, loops, extents):
        return Refusal("not-in-groups", "the channels of a group do not lie side by side in image and result")
    return _with_roles(view, root, (dtype, extents), {image: access, position: filter_}, loops)


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


def _with_roles(
    view: DispatchView, root: StructuredOp, types: tuple[str, tuple[Dim, ...]],
    operands: dict[int, LinearAccess | Operand],
    roles: tuple[int, int, int],
) -> WindowLoops | Refusal:  # fmt: skip
    (dtype, extents), (group, output, inner) = types, roles
    (image, access), (position, filter_) = operands.items()
    assert isinstance(access, LinearAccess) and isinstance(filter_, Operand)
    written = [expr.position for expr in root.output_maps[0].results if isinstance(expr, AffineDimExpr)]
    pixels = [loop for loop in written if loop not in roles and extents[loop] != 1]
    if any(loop in used_dims(filter_.map) for loop in pixels):
        return Refusal("filter-per-pixel", "the filter differs between pixels")
    sliding = sliding_axes([access], extents, pixels, [loop for loop in root.reduction if loop != inner])
    if isinstance(sliding, Refusal):
        return sliding
    if sliding.across is None or len(sliding.down) > 1:
        return Refusal("no-window", "the window does not slide down lines and along pixels")
    if access.padding and access.pad != 0:
        return Refusal("padding", "the padding is not zero")
    channels = Axis((group, output), (extents[group], extents[output]))
    groups = Groups(Axis((inner,), (extents[inner],)), known(extents[output]), known(extents[inner]))
    images = (Image(access, 0, channels.extent),)
    loops = WindowLoops(
        view,
        root,
        dtype,
        extents,
        images,
        image,
        filter_,
        position,
        channels,
        sliding,
        skips_padding=False,
        groups=groups,
    )
    if ways_of(loops) is None:
        return Refusal("window-map", "the window does not step down lines and along pixels by whole numbers known now")
    return loops


def plan_groups(loops: WindowLoops, machine: Machine, pixels: int | None = None) -> CopiedWindowPlan | Refusal:
    """The plan of Loops with groups, or why this is not the way to do it. `pixels` stands in for the chosen ones,
    to measure others."""
    view, lanes, groups, ways = loops.view, machine.lanes(loops.dtype), loops.groups, ways_of(loops)
    assert groups is not None and ways is not None and loops.filter is not None
    paths = lone_root_paths(view, loops.root)
    if isinstance(paths, Refusal):
        return paths
    width = lcm(groups.outputs, lanes)
    packed = _packed(loops, width // groups.outputs)
    refused = _refused(loops, ways, lanes, machine) or (refused_staging(loops, width) if packed is None else None)
    if refused is not None:
        return refused
    channels = width // groups.outputs * groups.inputs
    bunch = min(-(-known(loops.channel.extent) // width), max(1, LINE_BYTES // (channels * BYTES[loops.dtype])))
    strip = _strip(loops, ways, bunch * channels, machine)
    if strip is None:
        return _NO_ROOM
    tile = pixels or max(2, min(MOST_PIXELS, machine.vector_registers - 2 - min(ways[1].positions, 5)))
    return spread_out(
        CopiedWindowPlan(
            view=view, workgroups=0, constant_layouts=layout_of(loops, packed), loops=loops, pixels=tile,
            vectors=width // lanes, lanes=lanes, blocks=Blocks(1, 1, 1, False), packed=packed, paths=tuple(paths),
            rows=ways[0], columns=ways[1], strip_lines=strip[0], bunch=bunch,
            strip_pixels=strip[1],
            notes={
                "tile": f"{tile}x{lanes}", "panel": f"{width // groups.outputs} groups", "lines": strip[0],
                **filter_note(packed, loops),
            },
        ),
        machine,
    )  # fmt: skip


def _refused(loops: WindowLoops, ways: tuple[Direction, Direction], lanes: int, machine: Machine) -> Refusal | None:
    groups, pixel = loops.groups, loops.pixel
    assert groups is not None and pixel is not None
    outputs, steps, width, size = groups.outputs, groups.inputs, lcm(groups.outputs, lanes), BYTES[loops.dtype]
    stride = known(loops.images[0].access.stride(pixel.inner))
    if outputs >= 2 * lanes and cached_rows(stride * size, machine) >= MAX_ROWS:
        return Refusal("wide-groups", f"groups of {outputs} fill register tiles of their own")
    if width // lanes > MOST_VECTORS:
        return Refusal("uneven-groups", f"groups of {outputs} fit {lanes} lanes only every {width // lanes} vectors")
    dealt = [groups.sources(v, lanes) for v in range(width // lanes)]
    if any(len(set(sources)) > 1 for sources in dealt) and steps > MOST_STEPS:
        return Refusal("long-groups", f"{steps} channels of a group are dealt out over the lanes")
    if any(len(set(sources)) > 2 and sources[-1] - sources[0] + steps > 2 * lanes for sources in dealt):
        return Refusal("spread-groups", "the channels behind a vector do not fit two vectors")
    least = max(LINE_BYTES // size, width // outputs * steps)
    return _NO_ROOM if _strip(loops, ways, least, machine) is None else None


def _strip(
    loops: WindowLoops, ways: tuple[Direction, Direction], channels: int, machine: Machine
) -> tuple[int, int] | None:
    """Lines, and pixels of them, whose strip of the image stays near the core: what two strips share is copied twice.
    Strips of known lines are as equal as can be. None where not one line fits the scratch."""
    (rows, columns), pixel_bytes = ways, channels * BYTES[loops.dtype]
    lines, pixels = extent_of(loops.line, rows), extent_of(loops.pixel, columns)
    if not (lines.known and pixels.known):
        shape = strip_shape(lines, pixels, pixel_bytes)
        return (shape.lines, shape.pixels) if shape is not None else None
    row_bytes = columns.steps(pixels.count) * pixel_bytes
    if rows.steps(1) * row_bytes > MOST_COPIED_BYTES:
        return None
    high = max(1, strip_height(rows.steps, lines.count, row_bytes, 2 * machine.l1_bytes))
    return shared_out(lines.count, high), pixels.count


def _packed(loops: WindowLoops, groups: int) -> PackedColumns | None:
    """The filter in panels of so many groups; None where only the run knows it."""
    filter_, sliding = loops.filter, loops.sliding
    assert filter_ is not None and sliding.across is not None and loops.groups is not None
    if not is_packable_constant(loops.view, filter_):
        return None
    shape = [known(size) for size in loops.view.shapes.dims(filter_.value)]
    filter_loops = loops_of(filter_.map.results)
    reduction = [*(axis.inner for axis in sliding.down), loops.groups.inner.inner, sliding.across.inner]
    return packed_groups(shape, filter_loops, loops.channel.loops, reduction, groups)
