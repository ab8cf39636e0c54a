"""How a window goes over strips of an image that is evaluated into scratch: which loops go along the lanes, the lines
and the pixels, and how often an element is evaluated.

    channels    lanes run along the channels, and so does what the image is made of: a strip has some lines of the
                result, and all pixels of what lies under them
    pixels      lanes run along the pixels of a line, a strip has lines of one channel
    turned      as `channels`, of an image that is made of what lies along the pixels: it is turned on the way

An element is evaluated once for each strip that has it: what lies between two strips by both (`strip_shapes.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Literal, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType, f32, f64
from xdsl.ir import Attribute, SSAValue

from fuseline.analysis.combining import combinations
from fuseline.analysis.computed_images import ComputedImage
from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.pixel_lines import MOST_LANE_STEP, written_orders
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.strip_shapes import (
    STRIP_BYTES,
    Extent,
    StripShape,
    bunch_of,
    strip_height,
    strip_shape,
    whole_lines,
    widest_strip,
)
from fuseline.analysis.structured import StructuredOp, multiply_add_operands
from fuseline.ir.costs import LINE_BYTES, assumed_size
from fuseline.ir.dim import Dim
from fuseline.ir.element_types import element_bytes

APART = 0.36
"""What it costs to read a line of what the image is made of a cache line at a time, not two, in evaluations of an
element, beside windows of one line: more lines of a window weigh that much less. Taller strips of one cache line take
.74 to .93 of the time for 7x7 windows, .84 to 1.03 for 5x5 ones, and .9 to 1.09 for 3x3 ones."""

NEAR_BYTES = 56 * 1024
"""The same of one channel, which stays in the first-level cache or nearly so."""

UNROLLED_TAPS = 9
"""Taps of a window that share their columns."""

TALLEST_TILE = 12
"""Lines of a tile whose lanes are pixels, at most."""


NARROW = (8, 16)
"""Bits of what an image may be stored in beside the type of the window."""


def combines_floats(root: StructuredOp, position: int) -> bool:
    """Whether a window makes f32 or f64 of its input `position` and a filter at most, and does nothing with that but to
    widen, multiply and combine it."""
    used = [i for i in range(len(root.inputs)) if root.body.args[i].uses]
    made = _element_type(root.op.results[0])
    narrow = [i for i in used if _element_type(root.inputs[i]) != made]
    sides, ops = multiply_add_operands(root.op), len(root.body.ops) - len(narrow)
    filtered = len(used) == 2 and sides is not None and sides[0] != sides[1] and ops == 3
    pooled = len(used) == 1 and sides is None and ops == 2
    if made not in (f32, f64) or not (filtered or pooled) or combinations(root.op) is None:
        return False
    return not narrow or (narrow == [position] and made == f32 and _is_widened(root, position))


def _is_widened(root: StructuredOp, position: int) -> bool:
    uses, stored = list(root.body.args[position].uses), _element_type(root.inputs[position])
    widens = len(uses) == 1 and isinstance(uses[0].operation, arith.SIToFPOp | arith.ExtFOp)
    return widens and getattr(stored, "bitwidth", 0) in NARROW


def _element_type(value: SSAValue) -> Attribute:
    return value.type.get_element_type() if isinstance(value.type, TensorType) else value.type


@dataclass(frozen=True, slots=True)
class Strips:
    """How a window goes over them: by `kind`, with lanes along loop `lane` of the result; `often`: evaluations of an
    element."""

    kind: Literal["channels", "pixels", "turned"]
    lane: int
    often: float


def strips_of(root: StructuredOp, position: int, image: ComputedImage, shapes: ShapeAnalysis) -> Strips | None:
    """How the window `root` goes over `image`, its input `position`; None where it does not go plainly along lines and
    pixels, or too much lies under a window."""
    roles = _Roles(root, position, image, root.loops(shapes))
    if not roles.are_plain:
        return None
    return next((found for found in roles.ways(element_bytes(root.op.results[0])) if found is not None), None)


def channel_lines(often: Callable[[int], float | None], taps: int) -> int:
    """Cache lines of channels of a strip, 1 or 2: `often(n)` is how often elements are evaluated in strips of n, None
    where one line of the result does not fit; `taps`: lines of the window."""
    two, one = often(2), often(1)
    return 1 if two is not None and one is not None and two > (1 + APART / taps) * one else 2


def plane_strips(lines: Extent, pixels: Extent, size: int) -> StripShape | None:
    """The strips of one channel, of elements of `size` bytes: as high as a tile at least where they have whole lines;
    else two tiles high, and as wide as there is room for: lines are streamed from memory (3x3 over 500x500 in strips of
    128 pixels: twice the time of whole lines)."""
    least = min(TALLEST_TILE, lines.count)
    line_bytes = pixels.steps(pixels.count) * size
    if pixels.known and lines.steps(least) * line_bytes <= STRIP_BYTES:
        return whole_lines(lines, pixels, max(least, strip_height(lines.steps, lines.count, line_bytes, NEAR_BYTES)))
    return widest_strip(lines, pixels, 2 * TALLEST_TILE, size)


@dataclass(frozen=True, slots=True)
class _Way:
    """A loop of the result, and the one of the window that slides along it, if one does: how far both go, in steps of
    `step` elements of the image. `points` are assumed where they are not `known`."""

    points: int = 1
    known: bool = True
    along: int = 1
    window: int = 0
    taps: int = 1
    step: int = 1

    def steps(self, points: int) -> int:
        """Elements under so many points of the result."""
        return (points - 1) * self.along + (self.taps - 1) * self.window + 1

    @property
    def extent(self) -> Extent:
        """What the strips go by."""
        return Extent(self.points, self.steps, self.known)


class _Roles:
    """What the loops of a root do to its image; `extents` of all."""

    def __init__(self, root: StructuredOp, position: int, image: ComputedImage, extents: Sequence[Dim]) -> None:
        self.image, self.extents = image, extents
        others = [map_ for i, map_ in enumerate(root.input_maps) if i != position and root.body.args[i].uses]
        self.own = {loop for map_ in others for loop in used_dims(map_)}
        self.window = {loop for loop in root.reduction if extents[loop] != 1}
        self.moved = [self._moving(form.loops) for form in image.at]
        self.padded = [self._moving(bound.coordinate.loops) for bound in image.bounds]
        self.orders = [[loop for loop in order if extents[loop] != 1] for order in written_orders(root)]

    def _moving(self, loops: Iterable[int]) -> frozenset[int]:
        return frozenset(loop for loop in loops if self.extents[loop] != 1)

    @property
    def are_plain(self) -> bool:
        """Whether each loop moves one coordinate at most, forwards; a coordinate is moved by one loop of the result,
        and by one of the window at most; padding is that of such coordinates; and there are lines at all."""
        used = [loop for loops in self.moved for loop in loops]
        counts = [(len(loops - self.window), len(loops & self.window)) for loops in self.moved if loops]
        steps = [cast("int", step) for form in self.image.at for step in form.loops.values()]
        return (
            len(set(used)) == len(used)
            and self.window <= set(used)
            and all(points == 1 and taps <= 1 for points, taps in counts)
            and all(loops in self.moved for loops in self.padded)
            and len(set(self.padded)) == len(self.padded)
            and all(step > 0 for step in steps)
            and 0 < len(self.window) <= 2
            and bool(self.orders and self.orders[0])
        )

    def ways(self, size: int) -> Iterable[Strips | None]:
        """The ways to go over it, the better ones first; `size`: bytes of an element."""
        lying = [loop for loop in self.moved[self.image.lying] if loop not in self.window]
        if lying:
            yield self._by_channels("channels", lying[0], size)
        yield self._by_pixels(size)
        if lying and lying[0] in self._tiled(self.orders[0], self.orders[0][-1])[-1:]:
            yield self._by_channels("turned", self.orders[0][-1], size)

    def _by_channels(self, kind: Literal["channels", "turned"], lane: int, size: int) -> Strips | None:
        """Lanes along a loop that no window slides along, without padding."""
        rest = self._tiled(self.orders[0], lane)
        if lane not in self.orders[0] or not rest or self._step(lane) != 1 or self._tap(lane) is not None:
            return None
        channels = self.extents[lane]
        if not isinstance(channels, int) or not self._windows_are_known(rest[-2:]):
            return None
        lines, pixels = self._way(rest[-2:-1]), self._way(rest[-1:])
        if any(lane in loops for loops in self.padded) or not self._slides(rest[-2:]) or pixels.taps == 1:
            return None
        whole = -(-channels * size // LINE_BYTES)

        def evaluated(n: int) -> float | None:
            found = strip_shape(lines.extent, pixels.extent, LINE_BYTES * bunch_of(whole, LINE_BYTES, n))
            return found.often if found is not None else None

        often = evaluated(channel_lines(evaluated, lines.taps))
        if pixels.taps > UNROLLED_TAPS or often is None or (kind == "turned" and pixels.step != 1):
            return None
        return Strips(kind, lane, often)

    def _by_pixels(self, size: int) -> Strips | None:
        """Lanes along the pixels of a line, and tiles over several lines."""
        step = [0, *(self._lane_step(order[-1]) for order in self.orders)]
        order = next((order for order, n in zip(self.orders, step[1:], strict=True) if 0 < n <= MOST_LANE_STEP), None)
        rest = self._tiled(order, order[-1]) if order is not None else []
        if order is None or not rest or not self._windows_are_known([rest[-1], order[-1]]):
            return None
        lines, pixels = self._way(rest[-1:]), self._way(order[-1:])
        if not self._slides([rest[-1], order[-1]]) or pixels.step != 1:
            return None
        found = plane_strips(lines.extent, pixels.extent, size)
        if not 1 < lines.taps <= UNROLLED_TAPS or found is None or not self.own.isdisjoint({rest[-1], order[-1]}):
            return None
        return Strips("pixels", order[-1], found.often)

    def _windows_are_known(self, loops: Sequence[int]) -> bool:
        """Whether the compiler knows how far the window goes along these loops."""
        return all(isinstance(self.extents[tap], int) for loop in loops if (tap := self._tap(loop)) is not None)

    def _slides(self, loops: Iterable[int]) -> bool:
        """Whether the window slides along these loops and no others."""
        return {self._tap(loop) for loop in loops} - {None} == self.window

    def _step(self, loop: int) -> int:
        """How far a loop moves the coordinate that it moves."""
        axis = self.image.moved_by(loop)
        return cast("int", self.image.at[axis].loops[loop]) if axis is not None else 0

    def _lane_step(self, loop: int) -> int:
        """The same along what the image is made of."""
        return self._step(loop) if self.image.moved_by(loop) == self.image.lying else 0

    def _tiled(self, order: Sequence[int], lane: int) -> list[int]:
        """The other loops of the result, those last that have one filter."""
        return sorted((loop for loop in order if loop != lane), key=lambda loop: loop not in self.own)

    def _tap(self, loop: int) -> int | None:
        """The loop of the window that slides along one of the result."""
        return next((tap for loops in self.moved if loop in loops for tap in loops & self.window), None)

    def _way(self, loops: Sequence[int]) -> _Way:
        if not loops:
            return _Way()
        loop, tap = loops[0], self._tap(loops[0])
        points = assumed_size(self.extents[loop]), isinstance(self.extents[loop], int)
        if tap is None:
            return _Way(*points, step=self._step(loop))
        step, taps = gcd(self._step(loop), self._step(tap)), cast("int", self.extents[tap])
        return _Way(*points, self._step(loop) // step, self._step(tap) // step, taps, step)
