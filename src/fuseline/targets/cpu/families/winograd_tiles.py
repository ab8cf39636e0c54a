"""Where the tiles of a convolution by minimal filtering are, and how their pixels are read: in place, or copied where padding or the end of
the image cuts them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

from fuseline.ir import dim as d
from fuseline.targets.cpu.access import AnyIndex, Index
from fuseline.targets.cpu.evaluator import Evaluator
from fuseline.targets.cpu.families.contraction_access import Bound
from fuseline.targets.cpu.families.winograd_plan import PATCH_VECTORS, WinogradPlan
from fuseline.targets.cpu.families.winograd_problem import ImageSegment, WindowAxis
from fuseline.targets.cpu.kernel_ir.types import Address, MemRef, Operand, Value
from fuseline.targets.cpu.packing import over_axes

Pixels = Callable[[Sequence[int]], Value]
"""The vector of channels at a pixel of the tile."""

Visitor = Callable[[Operand, Pixels], None]
"""Called with a first channel and the tile's pixels from there."""

ReadVector = Callable[[Sequence[Operand], int, Operand | None], Value]
"""`(pixel, channel, active) -> vector of channels`."""


@dataclass(frozen=True, slots=True)
class Place:
    """A tile: where the outer loops are, and its first pixel along each window axis."""

    outer: Mapping[int, Operand]
    origin: tuple[Operand, ...]


class TileReader:
    """Reads the pixels of tiles, a vector of channels at a time."""

    def __init__(self, plan: WinogradPlan, evaluator: Evaluator) -> None:
        self.plan, self.evaluator = plan, evaluator
        self.kernel, self.frame = evaluator.kernel, evaluator.frame
        self.chunk = min(plan.channel_pitch, PATCH_VECTORS * plan.lanes)
        self.page_vectors = max((segment.size // plan.lanes for segment in plan.segments), default=0)
        self.page = self.kernel.scratch("f32", self.page_vectors * plan.lanes)
        self.patch = self.kernel.scratch("f32", plan.blocking.points * self.chunk if plan.copies else 0)
        sizes = [axis.size for axis in plan.blocking.axes]
        self.patch_strides = [prod(sizes[i + 1 :]) * self.chunk for i in range(len(sizes))]

    def place(self, number: Operand) -> Place:
        """The tile of this number."""
        at = self.frame.coordinates(number, self.plan.grid)
        outer = self.plan.problem.outer
        origin = [self.kernel.mul(t, f.outputs) for t, f in zip(at[len(outer) :], self.plan.blocking.axes, strict=True)]
        return Place(dict(zip(outer, at, strict=False)), tuple(origin))

    def visit(self, place: Place, visitor: Visitor) -> None:
        """Call `visitor` for every vector of channels of a tile; behind the last channel they are 0."""
        if not self.plan.segments:
            self._copied(None, place, visitor)
        for segment in self.plan.segments:
            self._visit(segment, place, visitor)

    def _visit(self, segment: ImageSegment, place: Place, visitor: Visitor) -> None:
        whole = segment.size // self.plan.lanes * self.plan.lanes
        if whole < segment.size:
            self._copied(segment, place, visitor)
        else:
            inside = self._inside(segment, place)
            self.kernel.when(inside, lambda: self._in_place(segment, place, visitor), lambda: self._at_border(segment, place, visitor))

    # tiles within the image ----------------------------------------------------------------------------------------------------------

    def _inside(self, segment: ImageSegment, place: Place) -> Value:
        """Whether every pixel of the tile lies in the binding."""
        kernel = self.kernel
        conditions: list[Value] = []
        for i, (axis, f, origin) in enumerate(zip(self.plan.problem.windows, self.plan.blocking.axes, place.origin, strict=True)):
            last = kernel.add(origin, f.size - 1)
            conditions += [kernel.compare("lt", last, self._extent(axis))] if self._overhangs(axis, f.outputs) else []
            for bound in segment.bounds[i]:
                conditions.append(kernel.compare("ge", self._coordinate(bound, axis, origin), 0))
                conditions.append(kernel.compare("lt", self._coordinate(bound, axis, last), self.frame.operand(bound.size)))
        return self._all(conditions)

    def _coordinate(self, bound: Bound, axis: WindowAxis, pixel: Operand) -> Operand:
        kernel, coordinate = self.kernel, bound.coordinate
        return kernel.add(kernel.mul(pixel, self.frame.operand(coordinate.terms[axis.pixel])), self.frame.operand(coordinate.constant))

    def _in_place(self, segment: ImageSegment, place: Place, visitor: Visitor) -> None:
        kernel = self.kernel

        def body(channel: Operand) -> tuple[Operand, ...]:
            if self.plan.prefetches_pixels:
                self._prefetch_next(segment, place, channel)

            def pixel(at: Sequence[int]) -> Value:
                return self._load(segment, [kernel.add(o, i) for o, i in zip(place.origin, at, strict=True)], place, channel, None)

            visitor(kernel.add(channel, segment.start), pixel)
            return ()

        kernel.loop(0, segment.size, self.plan.lanes, body)

    def _prefetch_next(self, segment: ImageSegment, place: Place, channel: Operand) -> None:
        """Ask for what the next tile along the last axis does not share with this one."""
        kernel, axes = self.kernel, self.plan.blocking.axes
        fresh = range(axes[-1].size, axes[-1].size + axes[-1].outputs)
        for at in product(*(range(axis.size) for axis in axes[:-1]), fresh):
            memory, flat = self._flat(segment, [kernel.add(o, i) for o, i in zip(place.origin, at, strict=True)], place)
            kernel.prefetch(memory, kernel.add(flat, channel))

    def _load(self, segment: ImageSegment, pixel: Sequence[Operand], place: Place, channel: Operand, active: Operand | None) -> Value:
        """Channels of a segment, counted from its start, at a pixel."""
        memory, flat = self._flat(segment, pixel, place)
        return self.kernel.load(memory, self.kernel.add(flat, channel), self.plan.lanes, active=active)

    def _flat(self, segment: ImageSegment, pixel: Sequence[Operand], place: Place) -> tuple[MemRef, Operand]:
        """The first channel of a segment at a pixel."""
        kernel, access = self.kernel, segment.access
        flat = self.frame.operand(access.flat.constant)
        for loop, value in place.outer.items():
            flat = kernel.add(flat, kernel.mul(value, self.frame.operand(access.stride(loop))))
        for axis, value in zip(self.plan.problem.windows, pixel, strict=True):
            flat = kernel.add(flat, kernel.mul(value, self.frame.operand(access.stride(axis.pixel))))
        return self.frame.argument(access.source), flat

    # tiles at a border ---------------------------------------------------------------------------------------------------------------

    def fill_page(self) -> None:
        """Write the zeros that are read in place of pixels outside the image."""
        kernel, lanes = self.kernel, self.plan.lanes

        def body(v: Operand) -> tuple[Operand, ...]:
            kernel.store(self.page, kernel.mul(v, lanes), kernel.const(0, "f32", lanes))
            return ()

        kernel.loop(0, self.page_vectors, 1, body)

    def _at_border(self, segment: ImageSegment, place: Place, visitor: Visitor) -> None:
        """An address is chosen per pixel, once for all its channels."""
        kernel, lanes = self.kernel, self.plan.lanes
        addresses: dict[tuple[int, ...], Address] = {}
        for at in product(*(range(axis.size) for axis in self.plan.blocking.axes)):
            pixel = [kernel.add(o, i) for o, i in zip(place.origin, at, strict=True)]
            memory, flat = self._flat(segment, pixel, place)
            addresses[at] = kernel.select_mem(self._exists(segment, pixel), memory, flat, self.page, 0)

        def body(channel: Operand) -> tuple[Operand, ...]:
            visitor(kernel.add(channel, segment.start), lambda at: kernel.load(addresses[tuple(at)], channel, lanes))
            return ()

        kernel.loop(0, segment.size, lanes, body)

    # copies --------------------------------------------------------------------------------------------------------------------------

    def _copied(self, segment: ImageSegment | None, place: Place, visitor: Visitor) -> None:
        """A piece of the channels at a time, of a segment or of the whole image."""
        kernel = self.kernel
        start, size = (segment.start, segment.size) if segment is not None else (0, self.plan.problem.channels)

        def piece(first: Operand, count: int) -> None:
            self._gather(place, count, lambda pixel, v, active: self._pixel(segment, pixel, place, kernel.add(first, v), active), segment)
            self._visit_patch(kernel.add(first, start), count, visitor)

        def whole_piece(first: Operand) -> tuple[Operand, ...]:
            piece(first, self.chunk)
            return ()

        whole = size // self.chunk * self.chunk
        kernel.loop(0, whole, self.chunk, whole_piece)
        if size > whole:
            piece(whole, size - whole)

    def _visit_patch(self, first: Operand, count: int, visitor: Visitor) -> None:
        kernel, lanes = self.kernel, self.plan.lanes

        def body(v: Operand) -> tuple[Operand, ...]:
            channel = kernel.mul(v, lanes)

            def pixel(at: Sequence[int]) -> Value:
                offset = sum(i * stride for i, stride in zip(at, self.patch_strides, strict=True))
                return kernel.load(self.patch, kernel.add(channel, offset), lanes, align=kernel.machine.vector_bytes)

            visitor(kernel.add(first, channel), pixel)
            return ()

        kernel.loop(0, -(-count // lanes), 1, body)

    def _gather(self, place: Place, count: int, read: ReadVector, segment: ImageSegment | None) -> None:
        """`count` channels of every pixel of the tile into the patch, zeros where there is none."""
        kernel, lanes = self.kernel, self.plan.lanes

        def one(offset: Operand, at: tuple[Operand, ...]) -> None:
            pixel = [kernel.add(o, i) for o, i in zip(place.origin, at, strict=True)]

            def store(value: Callable[[int, Operand | None], Value]) -> tuple[Operand, ...]:
                for v in range(0, count, lanes):
                    active = count - v if count - v < lanes else None
                    kernel.store(self.patch, kernel.add(offset, v), value(v, active), align=kernel.machine.vector_bytes)
                return ()

            exists = self._exists(segment, pixel)
            kernel.when(exists, lambda: store(lambda v, active: read(pixel, v, active)), lambda: store(lambda v, _: kernel.const(0, "f32", lanes)))

        over_axes(kernel, [axis.size for axis in self.plan.blocking.axes], self.patch_strides, one)

    def _exists(self, segment: ImageSegment | None, pixel: Sequence[Operand]) -> Value:
        """Whether a pixel lies in the image."""
        kernel = self.kernel
        conditions: list[Value] = []
        for i, (axis, f, at) in enumerate(zip(self.plan.problem.windows, self.plan.blocking.axes, pixel, strict=True)):
            conditions += [kernel.compare("lt", at, self._extent(axis))] if self._overhangs(axis, f.outputs) else []
            for bound in segment.bounds[i] if segment is not None else ():
                conditions.append(kernel.compare("ult", self._coordinate(bound, axis, at), self.frame.operand(bound.size)))
        return self._all(conditions)

    def _all(self, conditions: Sequence[Value]) -> Value:
        """Whether all hold; known now where that follows from one that fails, or from none being open."""
        kernel = self.kernel
        if any(condition.op == "const" and not condition.attr for condition in conditions):
            return kernel.const(0, "i1")
        open_ = [condition for condition in conditions if condition.op != "const"]
        return reduce(kernel.bitand, open_) if open_ else kernel.const(1, "i1")

    def _pixel(self, segment: ImageSegment | None, pixel: Sequence[Operand], place: Place, channel: Operand, active: Operand | None) -> Value:
        if segment is not None:
            return self._load(segment, pixel, place, channel, active)
        problem, lanes, evaluator = self.plan.problem, self.plan.lanes, self.evaluator
        operand = problem.base.lhs
        loops: list[AnyIndex] = [Index(0)] * problem.base.root.rank
        for loop, value in place.outer.items():
            loops[loop] = Index(value)
        for axis, value in zip(problem.windows, pixel, strict=True):
            loops[axis.pixel] = Index(value)
        loops[problem.channel] = Index(channel, 1 if lanes > 1 else 0)
        return evaluator.value_at(operand.value, evaluator.through(operand.map, loops, lanes), lanes, active)

    def _extent(self, axis: WindowAxis) -> Operand:
        """Coordinates that outputs reach along an axis."""
        return self.frame.operand(d.add(axis.outputs, axis.taps - 1))

    def _overhangs(self, axis: WindowAxis, outputs: int) -> bool:
        """Whether the last tile may have outputs that do not exist."""
        return not isinstance(axis.outputs, int) or axis.outputs % outputs != 0
