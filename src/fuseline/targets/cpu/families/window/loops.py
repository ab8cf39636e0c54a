"""The roles of the loops of a root that slides a window over an image: channel by channel, or over groups of channels.

out[outer, line, pixel, channel] = combine over window of image[.., pixel * stride + window * dilation - low, channel]
(* filter[window, channel])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from xdsl.dialects import arith
from xdsl.ir import Operation
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.combining import is_ordered
from fuseline.analysis.computed_images import ComputedImage, computed_image
from fuseline.analysis.image_strips import Strips, strips_of
from fuseline.analysis.indexing_maps import dims_of, used_dims
from fuseline.analysis.operand_access import LinearAccess, Segment
from fuseline.analysis.structured import Kind, StructuredOp, kind, multiply_add_operands, yielded
from fuseline.dispatch.view import DispatchView
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.combining import combiners
from fuseline.targets.cpu.families.contraction.access import access_segments, is_binding, linear_access
from fuseline.targets.cpu.families.contraction.axes import Axis, Operand
from fuseline.targets.cpu.families.family import NEVER_RUNS
from fuseline.targets.cpu.families.window.lanes import as_written, channel_lane, pixel_lane
from fuseline.targets.cpu.families.window.sliding_axes import SlidingAxes, sliding_axes
from fuseline.targets.cpu.families.window.widened import widened_image
from fuseline.targets.target import Refusal

_IDENTITY: dict[type[Operation], float] = {
    arith.AddfOp: 0.0, arith.MaximumfOp: -inf, arith.MaxnumfOp: -inf, arith.MinimumfOp: inf, arith.MinnumfOp: inf,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Image:
    """The channels `start` to `start + channels` of the image, which lie in one binding."""

    access: LinearAccess
    start: Dim
    channels: Dim


@dataclass(frozen=True, slots=True)
class Groups:
    """Channels that mix within groups: `outputs` of the result are made of `inputs` of the image, over which `inner`
    runs."""

    inner: Axis
    outputs: int
    inputs: int

    def sources(self, v: int, lanes: int) -> tuple[int, ...]:
        """The image channel behind each lane of vector `v` of a panel at the first step, counted from the panel's
        first.

        >>> axis = Axis((0,), (4,))
        >>> Groups(axis, 4, 4).sources(0, 8), Groups(axis, 12, 12).sources(1, 8)
        ((0, 0, 0, 0, 4, 4, 4, 4), (0, 0, 0, 0, 12, 12, 12, 12))
        """
        return tuple((v * lanes + lane) // self.outputs * self.inputs for lane in range(lanes))


@dataclass(frozen=True)
class WindowLoops:
    """The roles of the loops and operands. `channel` runs along the lanes; where the channels mix in `groups` it is
    (group, output in group).

    `images` are the parts of the image along its channels, one after the other: more than one where it is a concat.
    `computed`: what is evaluated for the only one, which lies nowhere.
    """

    view: DispatchView
    root: StructuredOp
    dtype: str
    extents: tuple[Dim, ...]
    images: tuple[Image, ...]
    image_position: int
    filter: Operand | None
    filter_position: int
    channel: Axis
    sliding: SlidingAxes
    skips_padding: bool
    groups: Groups | None = None
    computed: ComputedImage | None = None

    @property
    def image_dtype(self) -> str:
        """How elements of the image are stored: as `dtype`, or narrower: each window widens what it loads."""
        return dtype_of(self.root.inputs[self.image_position].type)

    @property
    def outer(self) -> tuple[Axis, ...]:
        """The axes of the result before lines and pixels."""
        return self.sliding.outer

    @property
    def line(self) -> Axis | None:
        """The axis before the pixels."""
        return self.sliding.line

    @property
    def pixel(self) -> Axis | None:
        """The tiled axis."""
        return self.sliding.pixel

    @property
    def down(self) -> tuple[Axis, ...]:
        """The reduction axes that do not slide along the pixels."""
        return self.sliding.down

    @property
    def across(self) -> Axis | None:
        """The reduction axis that does."""
        return self.sliding.across

    @property
    def any_order(self) -> bool:
        """Whether the root only combines elements of the image, by an op that may be done in any order from any
        start."""
        ops = 2 if self.image_dtype == self.dtype else 3
        return len(self.root.body.ops) == ops and self.filter is None and combiners(self.root.op) is not None

    @property
    def reduction(self) -> tuple[Axis, ...]:
        """All reduction axes, outermost first."""
        return (*self.down, *((self.across,) if self.across is not None else ()))

    @property
    def filter_axes(self) -> tuple[Axis, ...]:
        """The axes of the filter beside the channels, outermost first, as it lies in panels."""
        inner = (self.groups.inner,) if self.groups is not None else ()
        return (*self.down, *inner, *((self.across,) if self.across is not None else ()))


def window_loops(view: DispatchView, *, planes: bool = False) -> WindowLoops | Refusal:
    """The root of `view` as a window loops, or why it is none. `planes`: lanes run along the pixels of a line, which
    may be padded, the tiled axis is that of the lines, and what moves along the lanes in the window comes first of
    those `down` (`planes.py`)."""
    found = _window(view)
    return found if isinstance(found, Refusal) else _with_operands(view, *found, planes=planes)


def strip_loops(view: DispatchView) -> tuple[WindowLoops, Strips] | Refusal:
    """The same of an image that is evaluated strip by strip (`analysis/image_strips.py`), wherever it lies."""
    found = _window(view)
    if isinstance(found, Refusal):
        return found
    root, dtype, used = found
    position = _image_of(root, used)
    image = computed_image(root, position, view.shapes, is_binding)
    strips = strips_of(root, position, image, view.shapes) if image is not None else None
    last = image.moved_by(strips.lane) if image is not None and strips is not None else None
    if image is None or strips is None or last is None:
        return Refusal("image-computed", "the image is not evaluated strip by strip")
    extents = root.loops(view.shapes)
    moving = [loop for loop in _written(root) if extents[loop] != 1]
    only, pixels = (Image(image.access(last), 0, extents[strips.lane]),), strips.kind == "pixels"
    other = next((i for i in used if i != position), None)
    if pixels and moving[-1] != strips.lane:
        moving = as_written(view, moving, (Segment(None, 0, 1, only[0].access),))
    operands = (only, position, _operand(view, root, other, extents), other or 0)
    along = window_along(root, position, strips.lane) if pixels else []
    loops = _with_roles(view, root, (dtype, extents), operands, (moving, strips.lane, along))
    return loops if isinstance(loops, Refusal) else (replace(loops, computed=image), strips)


def _window(view: DispatchView) -> tuple[StructuredOp, str, Sequence[int]] | Refusal:
    """The root of a window, the type of its result, and the inputs that it uses."""
    root = view.root_view
    if root is None or kind(root.op) not in (Kind.DEPTHWISE, Kind.POOLING, Kind.REDUCTION):
        return Refusal("not-a-window", "the root slides no window channel by channel")
    used = {i for i in range(len(root.inputs)) if root.body.args[i].uses}
    sides = multiply_add_operands(root.op)
    if (
        len(root.outputs) != 1
        or len(used) not in (1, 2)
        or (len(used) == 2 and (sides is None or kind(root.op) is not Kind.DEPTHWISE))
    ):
        return Refusal("window-body", "the window combines something else than one image, with at most one filter")
    if is_ordered(root):
        return Refusal(
            "window-body", "what the window makes depends on the order of its loops, which are walked as the image lies"
        )
    dtype, widened = dtype_of(root.op.results[0].type), widened_image(root)
    if dtype not in ("f32", "f64") or any(dtype_of(root.inputs[i].type) != dtype for i in used - widened):
        return Refusal("element-type", "windows are for f32 and f64 throughout, and images of 8 or 16 bits")
    if 0 in root.loops(view.shapes):
        return NEVER_RUNS
    return root, dtype, sorted(used)


def _with_operands(
    view: DispatchView, root: StructuredOp, dtype: str, used: Sequence[int], *, planes: bool
) -> WindowLoops | Refusal:
    extents, position = root.loops(view.shapes), _image_of(root, used)
    other = next((i for i in used if i != position), None)
    found = access_segments(view, root.inputs[position], root.input_maps[position], extents, borders=True)
    if not found or any(segment.access.floordiv_terms for segment in found):
        return Refusal("image-computed", "the image does not lie in buffers as it is")
    written = _written(root)
    moving = [loop for loop in written if extents[loop] != 1]
    if not moving or set(written) != set(root.parallel):
        return Refusal("no-channels", "nothing runs along the lanes")
    if planes and pixel_lane(found, moving) is None:
        moving = as_written(view, moving, found)
    channel = pixel_lane(found, moving) if planes else channel_lane(found, moving)
    if channel is None:
        return Refusal("channels-not-contiguous", "no loop of the result walks the image element by element")
    filter_ = _operand(view, root, other, extents)
    images = tuple(Image(s.access, s.start, s.size if s.loop is not None else extents[channel]) for s in found)
    along = window_along(root, position, channel) if planes else []
    operands = (images, position, filter_, other or 0)
    return _with_roles(view, root, (dtype, extents), operands, (moving, channel, along), copied=planes)


def _written(root: StructuredOp) -> list[int]:
    """The loops of the result as they are written."""
    return [expr.position for expr in root.output_maps[0].results if isinstance(expr, AffineDimExpr)]


def window_along(root: StructuredOp, image: int, lane: int) -> list[int]:
    """The loops of the window in the coordinate of the image that loop `lane` runs along."""
    coordinates = [dims_of(expr) for expr in root.input_maps[image].results]
    return [loop for loop in root.reduction if any(lane in loops and loop in loops for loops in coordinates)]


def _image_of(root: StructuredOp, used: Sequence[int]) -> int:
    """The operand that the window slides over: the one with the most loops in its coordinates."""
    if len(used) == 1:
        return used[0]
    return max(used, key=lambda i: len(used_dims(root.input_maps[i])))


def _operand(view: DispatchView, root: StructuredOp, position: int | None, extents: Sequence[Dim]) -> Operand | None:
    if position is None:
        return None
    value, map_ = root.inputs[position], root.input_maps[position]
    return Operand(value, map_, linear_access(view, value, map_, extents))


def lies_along(filter_: Operand, channel: int) -> bool:
    """Whether vectors of the filter can be loaded as they lie."""
    return filter_.access is not None and not filter_.bounds and filter_.access.stride(channel) == 1


def _with_roles(
    view: DispatchView, root: StructuredOp, types: tuple[str, tuple[Dim, ...]],
    operands: tuple[tuple[Image, ...], int, Operand | None, int],
    loops: tuple[list[int], int, list[int]], *, copied: bool = False,
) -> WindowLoops | Refusal:  # fmt: skip
    dtype, extents = types
    images, image_position, filter_, filter_position = operands
    moving, channel, along = loops
    accesses = [image.access for image in images]
    own = used_dims(filter_.map) if filter_ is not None else frozenset()
    # the last one is tiled, which asks for one filter for all of its pixels
    pixels = sorted((loop for loop in moving if loop not in (channel, *along)), key=lambda loop: loop not in own)
    window = [loop for loop in root.reduction if loop not in (channel, *along)]
    sliding = sliding_axes(accesses, extents, pixels, window, copied=copied)
    if isinstance(sliding, Refusal):
        return sliding
    if sliding.pixel is not None and sliding.pixel.inner in own:
        return Refusal("filter-per-pixel", "the filter differs between pixels")
    first = tuple(Axis((loop,), (extents[loop],)) for loop in along if extents[loop] != 1)
    sliding = replace(sliding, down=(*first, *sliding.down))
    channels = Axis((channel,), (extents[channel],))
    return WindowLoops(
        view,
        root,
        dtype,
        extents,
        images,
        image_position,
        filter_,
        filter_position,
        channels,
        sliding,
        skips_padding(root, accesses),
    )


def skips_padding(root: StructuredOp, images: Sequence[LinearAccess]) -> bool:
    """Whether combining the pad value changes nothing, so that window rows in the padding may be left out."""
    combine = yielded(root.op)[0].owner
    if not isinstance(combine, Operation):
        return False
    identity = _IDENTITY.get(type(combine))
    direct = any(operand in root.body.args for operand in combine.operands)
    plain = len(root.body.ops) == 2 or multiply_add_operands(root.op) is not None
    return (
        identity is not None and direct and plain and all(access.pad == identity for access in images if access.padding)
    )
