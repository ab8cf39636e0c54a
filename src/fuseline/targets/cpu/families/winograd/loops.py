"""A convolution seen as minimal filtering: which loops are windows over which pixels, which only repeat, and how the
image is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.convolution_dims import linear_terms
from fuseline.analysis.indexing_maps import is_projected_permutation
from fuseline.analysis.structured import Kind, kind
from fuseline.dispatch.view import DispatchView
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.families.contraction.access import Bound, LinearAccess
from fuseline.targets.cpu.families.contraction.loops import (
    ContractionLoops,
    RowSegment,
    contraction_loops,
)
from fuseline.targets.cpu.families.contraction.packable_constants import is_packable_constant
from fuseline.targets.cpu.families.contraction.results import ResultPath, lone_root_paths
from fuseline.targets.cpu.families.winograd.lying import ALONG_CHANNELS, ImageLying, image_lying
from fuseline.targets.target import Refusal

MAX_WINDOWS = 2
"""Axes that a tile spans: with a third it would have hundreds of elements, more than transforms can win."""


@dataclass(frozen=True, slots=True)
class WindowAxis:
    """A pair of loops, `pixel` over outputs and `tap` over the window, with unit steps: input coordinate `pixel +
    tap`."""

    pixel: int
    tap: int
    outputs: Dim
    taps: int


@dataclass(frozen=True, slots=True)
class ImageSegment:
    """Channels `start` to `start + size` of the image, side by side in one binding: `access`, its channels counted from
    `start`.

    `bounds`, per window axis, are the coordinates that move with it and may leave the binding; outside of it pixels are
    0, or those that its border repeats.
    """

    access: LinearAccess
    start: int
    size: int
    bounds: tuple[tuple[Bound, ...], ...]


@dataclass(frozen=True)
class WinogradLoops:
    """The roles of a convolution's loops: `windows` (slowest pixel first), `outer` loops that only repeat it, one
    `channel`, one column.

    `segments` are how its pixels lie in bindings; none where they are computed, not side by side, or padded other than
    along the windows. `lying`: how the tensors lie that such pixels are read from.
    """

    contraction: ContractionLoops
    windows: tuple[WindowAxis, ...]
    outer: tuple[int, ...]
    channel: int
    channels: int
    columns: int
    segments: tuple[ImageSegment, ...]
    paths: tuple[ResultPath, ...]
    lying: ImageLying

    @property
    def view(self) -> DispatchView:
        """The dispatch."""
        return self.contraction.view

    @property
    def taps(self) -> int:
        """Elements of the window."""
        return prod(axis.taps for axis in self.windows)


def winograd_loops(view: DispatchView) -> WinogradLoops | Refusal:
    """The root of `view` as minimal filtering, or why it is none. Takes f32, unit steps, no groups, a filter known at
    compile time."""
    root = view.root_view
    if root is None or kind(root.op) is not Kind.CONVOLUTION:
        return Refusal("not-a-convolution", "the root is no convolution")
    position = next(i for i, map_ in enumerate(root.input_maps) if not is_projected_permutation(map_))
    loops = contraction_loops(view, image=position)
    if isinstance(loops, Refusal):
        return loops
    if loops.elements != ("f32", "f32"):
        return Refusal("element-type", "the error bound is stated for f32")
    if loops.outer:
        return Refusal("groups", "a loop runs over both image and filter")
    if not is_packable_constant(view, loops.rhs):
        return Refusal("filter-not-constant", "the filter cannot be transformed at compile time")
    paths = lone_root_paths(view, root)
    return paths if isinstance(paths, Refusal) else _with_roles(loops, tuple(paths))


def _with_roles(loops: ContractionLoops, paths: tuple[ResultPath, ...]) -> WinogradLoops | Refusal:
    windows = _windows(loops)
    if isinstance(windows, Refusal):
        return windows
    root, extents = loops.root, loops.extents
    own = {loop for axis in windows for loop in (axis.pixel, axis.tap)}
    channels = [loop for axis in loops.reduction for loop in axis.loops if loop not in own]
    written = [expr.position for expr in root.output_maps[0].results if isinstance(expr, AffineDimExpr)]
    columns = loops.column.extent
    if len(channels) != 1 or not isinstance(extents[channels[0]], int) or not isinstance(columns, int):
        return Refusal("channels", "the image has not one loop over channels of known extent")
    outer = tuple(loop for loop in written if loop not in (*own, *loops.column.loops) and extents[loop] != 1)
    depth = extents[channels[0]]
    assert isinstance(depth, int)
    segments = _segments(loops, windows, channels[0], depth)
    lying = ALONG_CHANNELS if segments else image_lying(loops, [axis.pixel for axis in windows], channels[0])
    return WinogradLoops(loops, windows, outer, channels[0], depth, columns, segments, paths, lying)


def _windows(loops: ContractionLoops) -> tuple[WindowAxis, ...] | Refusal:
    """The pixel loops with their taps, in the order in which the image has them."""
    root, extents = loops.root, loops.extents
    found: list[WindowAxis] = []
    for expr in loops.lhs.map.results:
        linear = linear_terms(expr)
        terms = {loop: c for loop, c in linear[0].items() if extents[loop] != 1} if linear is not None else {}
        if linear is None or linear[1] != 0 or any(c != 1 for c in terms.values()):
            return Refusal("stride", f"the image is not read in unit steps: {expr}")
        if len(terms) < 2:
            continue
        pixels, taps = ([loop for loop in terms if loop in side] for side in (root.parallel, root.reduction))
        width = extents[taps[0]] if taps else None
        if len(pixels) != 1 or len(taps) != 1 or not isinstance(width, int):
            return Refusal("window", f"no pair of a pixel and a tap of known extent: {expr}")
        found.append(WindowAxis(pixels[0], taps[0], extents[pixels[0]], width))
    if not 1 <= len(found) <= MAX_WINDOWS:
        return Refusal("window-rank", f"{len(found)} axes have a window, not 1 to {MAX_WINDOWS}")
    return tuple(found)


def _segments(
    loops: ContractionLoops, windows: Sequence[WindowAxis], channel: int, channels: int
) -> tuple[ImageSegment, ...]:
    """The image as it can be read; none if any part of it cannot."""
    found = [_segment(segment, windows, channel, channels) for segment in loops.segments]
    return tuple(segment for segment in found if segment is not None) if None not in found else ()


def _segment(segment: RowSegment, windows: Sequence[WindowAxis], channel: int, channels: int) -> ImageSegment | None:
    access, start = segment.access, segment.start
    size = channels if segment.loop is None else segment.extents[channel]
    if segment.loop not in (None, channel) or not isinstance(start, int) or not isinstance(size, int):
        return None
    if access.floordiv_terms or access.pad != 0 or access.stride(channel) != 1:
        return None
    if any(access.stride(axis.pixel) != access.stride(axis.tap) for axis in windows):
        return None
    bounds = tuple(tuple(_along(axis, access)) for axis in windows)
    return ImageSegment(access, start, size, bounds) if sum(map(len, bounds)) == len(access.bounds) else None


def _along(axis: WindowAxis, access: LinearAccess) -> list[Bound]:
    """The bounds that move with one window and with nothing else, upwards."""
    found: list[Bound] = []
    for bound in access.bounds:
        terms = bound.coordinate.terms
        step = terms.get(axis.pixel)
        if (
            set(terms) <= {axis.pixel, axis.tap}
            and isinstance(step, int)
            and step > 0
            and terms.get(axis.tap, 0) == step
        ):
            found.append(bound)
    return found
