"""Patches of images that lie pixel by pixel, as those do whose channels come first: squares of vectors are evaluated
along the pixels and transposed in registers.

Evaluated along the channels, each lane would be gathered from a plane of its own: 2 to 5 times as long for the whole
kernel, most where planes are a multiple of 4 KiB and all lanes meet in one set of the first-level cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.emit.packing import over_axes
from fuseline.targets.cpu.families.contraction.turned_box import turned
from fuseline.targets.cpu.families.winograd.image_end import all_hold, before_end, image_end
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan, ends_with_tiles
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value

EvaluatePixels = Callable[[Sequence[Operand], Operand, "Operand | None"], Value]
"""`(first pixel, channel, active)`: one channel of as many pixels as there are lanes."""


class TurnedPatch:
    """Fills `patch`, whose pixels are `strides` apart along each window axis, with pixels that lie along `axis`."""

    def __init__(
        self, plan: WinogradPlan, buffers: DispatchBuffers, axis: int, patch: MemRef, strides: Sequence[int]
    ) -> None:
        self.plan, self.kernel, self.buffers, self.axis = plan, buffers.kernel, buffers, axis
        self.patch, self.strides = patch, strides

    def fill(
        self, origin: Sequence[Operand], first: Operand, vectors: tuple[Operand, Operand], evaluate: EvaluatePixels
    ) -> None:
        """Vectors `vectors` of the channels of a tile, of a piece that begins at vector `first`; 0 behind the last
        channel and beyond the image."""
        others = [number for number in range(len(self.strides)) if number != self.axis]
        sizes = [self.plan.blocking.axes[number].size for number in others]

        def line(offset: Operand, at: tuple[Operand, ...]) -> None:
            pixel = list(origin)
            for number, i in zip(others, at, strict=True):
                pixel[number] = self.kernel.add(origin[number], i)
            self._line(offset, pixel, (first, vectors), self._exists(others, pixel), evaluate)

        over_axes(self.kernel, sizes, [self.strides[number] for number in others], line)

    def _line(
        self,
        offset: Operand,
        pixel: Sequence[Operand],
        channels: tuple[Operand, tuple[Operand, Operand]],
        exists: Value,
        evaluate: EvaluatePixels,
    ) -> None:
        kernel, lanes, (first, (lo, hi)) = self.kernel, self.plan.lanes, channels
        whole, rest = divmod(self.plan.loops.channels, lanes)

        def one(vector: Operand, count: int = lanes) -> tuple[()]:
            at = kernel.add(offset, kernel.mul(kernel.sub(vector, first), lanes))
            for start in range(0, self.plan.blocking.axes[self.axis].size, lanes):
                self._square(at, (pixel, start), (kernel.mul(vector, lanes), count), exists, evaluate)
            return ()

        kernel.loop(lo, kernel.min(hi, whole) if rest else hi, 1, one)
        if rest:
            kernel.when(kernel.compare("lt", whole, kernel.as_value(hi)), lambda: one(whole, rest))

    def _square(
        self,
        offset: Operand,
        pixels: tuple[Sequence[Operand], int],
        channels: tuple[Operand, int],
        exists: Value,
        evaluate: EvaluatePixels,
    ) -> None:
        """As many pixels from number `start` of a line on as there are lanes, and as many channels, or what there is of
        them."""
        kernel, lanes, (line, start) = self.kernel, self.plan.lanes, pixels
        count = min(lanes, self.plan.blocking.axes[self.axis].size - start)
        place = list(line)
        place[self.axis] = kernel.add(line[self.axis], start)
        active = self._active(place, count)
        zero = kernel.const(0, "f32", lanes)

        def read() -> list[Value]:
            found = [evaluate(place, kernel.add(channels[0], i), active) for i in range(channels[1])]
            if active is not None and not isinstance(active, int):
                found = [kernel.select(kernel.mask(active, lanes), value, zero) for value in found]
            return [*found, *[zero] * (lanes - channels[1])]

        rows = kernel.when(exists, read, lambda: [zero] * lanes)
        for number, vector in enumerate(turned(kernel, rows)[:count]):
            at = kernel.add(offset, (start + number) * self.strides[self.axis])
            kernel.store(self.patch, at, vector, align=kernel.machine.vector_bytes)

    def _active(self, place: Sequence[Operand], count: int) -> Operand | None:
        """How many of `count` pixels exist; None: as many as there are lanes."""
        if not ends_with_tiles(self.plan, self.axis):
            end = image_end(self.plan, self.buffers, self.axis)
            return self.kernel.min(self.kernel.sub(end, place[self.axis]), count)
        return count if count < self.plan.lanes else None

    def _exists(self, axes: Sequence[int], pixel: Sequence[Operand]) -> Value:
        """Whether a line lies in the image."""
        conditions = before_end(self.plan, self.buffers, ((axis, pixel[axis]) for axis in axes))
        return all_hold(self.buffers, conditions)
