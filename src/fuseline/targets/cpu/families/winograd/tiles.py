"""Where the tiles of a convolution by minimal filtering are, and how their pixels come into a patch of scratch: read
where they lie, segment by segment, or evaluated, and 0 in the padding and beyond the image.

The copy costs little (0 to 4 % of a kernel against reading pixels in the transform itself): pixels come from memory in
runs of channels, the transform finds them in the first-level cache at fixed distances, and its code, which is large, is
there once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.coordinates import Index, point_at
from fuseline.targets.cpu.emit.folded_address import Folding
from fuseline.targets.cpu.emit.packing import over_axes
from fuseline.targets.cpu.families.contraction.access import Bound
from fuseline.targets.cpu.families.winograd.image_end import all_hold, before_end
from fuseline.targets.cpu.families.winograd.loops import ImageSegment, WindowAxis
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan
from fuseline.targets.cpu.families.winograd.turned_patch import TurnedPatch
from fuseline.targets.cpu.kernel_ir.types import Address, Operand, Value

ReadVector = Callable[[Operand, "Operand | None"], Value]
"""`(channel, active) -> vector of channels` of a pixel."""


@dataclass(frozen=True, slots=True)
class TileOrigin:
    """A tile: where the outer loops are, and its first pixel along each window axis."""

    outer: Mapping[int, Operand]
    origin: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """Channels `start` to `start + size` of the image: where they exist (`segment`), or evaluated (None)."""

    start: int
    size: int
    segment: ImageSegment | None


class TileReader:
    """Fills the patch `[pixel][channel]` with a piece of the channels of a tile."""

    def __init__(self, plan: WinogradPlan, emitter: BodyEmitter) -> None:
        self.plan, self.emitter = plan, emitter
        self.kernel, self.buffers = emitter.kernel, emitter.buffers
        self.patch = self.kernel.scratch("f32", plan.blocking.points * plan.piece * plan.lanes)
        sizes = [axis.size for axis in plan.blocking.axes]
        self.strides = [prod(sizes[i + 1 :]) * plan.piece * plan.lanes for i in range(len(sizes))]
        found = [Source(segment.start, segment.size, segment) for segment in plan.segments]
        self.sources = found or [Source(0, plan.loops.channels, None)]
        turned = plan.loops.lying.turned
        self.turned = (
            TurnedPatch(plan, self.buffers, turned, self.patch, self.strides)
            if turned is not None and plan.lanes > 1
            else None
        )

    @property
    def whole_pieces(self) -> bool:
        """Whether the channels are whole pieces, and are known to be in all kernels that are the same code."""
        form = self.plan.form
        return self.plan.vectors % self.plan.piece == 0 and (form is None or form.whole_pieces)

    def place(self, number: Operand) -> TileOrigin:
        """The tile of this number."""
        at = self.buffers.coordinates(number, self.plan.grid)
        outer = self.plan.loops.outer
        origin = [self.kernel.mul(t, f.outputs) for t, f in zip(at[len(outer) :], self.plan.blocking.axes, strict=True)]
        return TileOrigin(dict(zip(outer, at, strict=False)), tuple(origin))

    def pixel(self, at: Sequence[int], vector: Operand) -> Value:
        """A vector of a pixel in the patch."""
        offset = sum(i * stride for i, stride in zip(at, self.strides, strict=True))
        index = self.kernel.add(self.kernel.mul(vector, self.plan.lanes), offset)
        return self.kernel.load(self.patch, index, self.plan.lanes, align=self.kernel.machine.vector_bytes)

    def fill(self, place: TileOrigin, first: Operand, count: Operand) -> None:
        """Vectors `first` to `first + count` of the channels of every pixel of the tile; behind the last channel they
        are 0."""
        kernel = self.kernel
        for source in self.sources:
            start, end = source.start // self.plan.lanes, -(-(source.start + source.size) // self.plan.lanes)
            lo, hi = (
                (first, kernel.add(first, count)) if self._covers(source) else self._overlap(first, count, start, end)
            )
            if len(self.sources) == 1:
                self._fill_from(source, place, first, (lo, hi))
            else:
                meets = kernel.bitand(
                    kernel.compare("lt", first, end),
                    kernel.compare("lt", start, kernel.as_value(kernel.add(first, count))),
                )
                kernel.when(meets, lambda source=source, lo=lo, hi=hi: self._fill_from(source, place, first, (lo, hi)))

    def _covers(self, source: Source) -> bool:
        """Whether every piece that meets `source` lies in it, in whole vectors."""
        plan = self.plan
        step = plan.piece * plan.lanes
        if plan.form is not None and not plan.form.whole_pieces:
            return False
        return source.start % step == 0 and source.size % step == 0

    def _overlap(self, first: Operand, count: Operand, start: int, end: int) -> tuple[Operand, Operand]:
        return self.kernel.max(first, start), self.kernel.min(self.kernel.add(first, count), end)

    def _fill_from(
        self, source: Source, place: TileOrigin, first: Operand, vectors: tuple[Operand, Operand]
    ) -> tuple[Operand, ...]:
        """Vectors `vectors` of `source`, of a piece that begins at `first`."""
        kernel, lanes = self.kernel, self.plan.lanes
        if self.turned is not None:
            self.turned.fill(place.origin, first, vectors, partial(self._along_pixels, self.turned.axis, place))
            return ()

        def zero(channel: Operand, active: Operand | None) -> Value:
            del channel, active
            return kernel.const(0, "f32", lanes)

        def one(offset: Operand, at: tuple[Operand, ...]) -> None:
            pixel = [kernel.add(o, i) for o, i in zip(place.origin, at, strict=True)]

            def store(value: ReadVector) -> Callable[[], tuple[Operand, ...]]:
                return lambda: self._store_vectors(source, offset, first, vectors, value)

            read = store(lambda channel, active: self._read(source, place, pixel, channel, active))
            kernel.when(self._exists(source, pixel), read, store(zero))

        over_axes(kernel, [axis.size for axis in self.plan.blocking.axes], self.strides, one)
        return ()

    def _store_vectors(
        self, source: Source, offset: Operand, first: Operand, vectors: tuple[Operand, Operand], value: ReadVector
    ) -> tuple[Operand, ...]:
        kernel, lanes = self.kernel, self.plan.lanes

        def one(vector: Operand, active: Operand | None) -> tuple[Operand, ...]:
            index = kernel.add(offset, kernel.mul(kernel.sub(vector, first), lanes))
            channel = kernel.sub(kernel.mul(vector, lanes), source.start)
            kernel.store(self.patch, index, value(channel, active), align=kernel.machine.vector_bytes)
            return ()

        lo, hi = vectors
        if self._covers(source):
            for i in range(self.plan.piece):
                one(kernel.add(lo, i), None)
            return ()
        whole, rest = divmod(source.start + source.size, lanes)
        kernel.loop(lo, kernel.min(hi, whole) if rest else hi, 1, lambda vector: one(vector, None))
        if rest:
            kernel.when(kernel.compare("lt", whole, kernel.as_value(hi)), lambda: one(whole, rest))
        return ()

    # pixels -----------------------------------------------------------------------------------------------------------

    def _exists(self, source: Source, pixel: Sequence[Operand]) -> Value:
        """Whether a pixel lies in the image; where it is evaluated, padding is part of it."""
        bounds = source.segment.bounds if source.segment is not None else ()
        inside = [
            self.kernel.compare("ult", self._coordinate(bound, axis, at), self.buffers.operand(bound.size))
            for axis, at, mine in zip(self.plan.loops.windows, pixel, bounds, strict=False)
            for bound in mine
            if bound.border is None
        ]
        return all_hold(self.buffers, [*before_end(self.plan, self.buffers, enumerate(pixel)), *inside])

    def _coordinate(self, bound: Bound, axis: WindowAxis, at: Operand) -> Operand:
        kernel, coordinate = self.kernel, bound.coordinate
        return kernel.add(
            kernel.mul(at, self.buffers.operand(coordinate.terms[axis.pixel])),
            self.buffers.operand(coordinate.constant),
        )

    def _read(
        self, source: Source, place: TileOrigin, pixel: Sequence[Operand], channel: Operand, active: Operand | None
    ) -> Value:
        if source.segment is None:
            return self._evaluated(place, pixel, channel, active)
        kernel, access = self.kernel, source.segment.access
        flat = self.buffers.operand(access.flat.constant)
        for loop, value in place.outer.items():
            flat = kernel.add(flat, kernel.mul(value, self.buffers.operand(access.stride(loop))))
        for axis, value in zip(self.plan.loops.windows, pixel, strict=True):
            flat = kernel.add(flat, kernel.mul(value, self.buffers.operand(access.stride(axis.pixel))))
        address = self._folded(kernel.address(self.buffers.argument(access.source), flat), source.segment, pixel)
        return kernel.load(kernel.offset(address, channel), 0, self.plan.lanes, active=active)

    def _folded(self, address: Address, segment: ImageSegment, pixel: Sequence[Operand]) -> Address:
        """The address of a pixel, given the one as if the image went on beyond its borders."""
        operand = self.buffers.operand
        for axis, bounds, at in zip(self.plan.loops.windows, segment.bounds, pixel, strict=True):
            for bound in bounds:
                if bound.border is not None:
                    folding = Folding(bound.border.mode, operand(bound.size), operand(bound.border.stride))
                    address = folding.at(self.kernel, address, self._coordinate(bound, axis, at))
        return address

    def _evaluated(
        self, place: TileOrigin, pixel: Sequence[Operand], channel: Operand, active: Operand | None
    ) -> Value:
        return self._value(place, pixel, channel, self.plan.loops.channel, active)

    def _along_pixels(
        self, axis: int, place: TileOrigin, pixel: Sequence[Operand], channel: Operand, active: Operand | None
    ) -> Value:
        return self._value(place, pixel, channel, self.plan.loops.windows[axis].pixel, active)

    def _value(
        self, place: TileOrigin, pixel: Sequence[Operand], channel: Operand, lying: int, active: Operand | None
    ) -> Value:
        """Elements from a channel of a pixel on, along loop `lying`."""
        loops, lanes, emitter = self.plan.loops, self.plan.lanes, self.emitter
        places = {axis.pixel: value for axis, value in zip(loops.windows, pixel, strict=True)}
        places[loops.channel] = channel
        along = {lying: Index(places[lying], 1 if lanes > 1 else 0)}
        at = point_at(loops.contraction.root.rank, {**place.outer, **places, **along})
        operand = loops.contraction.lhs
        return emitter.value_at(operand.value, emitter.through(operand.map, at, lanes), lanes, active)
