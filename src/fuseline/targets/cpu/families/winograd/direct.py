"""Tiles of a convolution by minimal filtering that are computed directly after all.

A transform mixes all pixels of a tile, so that one infinity or NaN reaches outputs whose window does not cover it, and
what is finite may overflow on the way. Every product has its part in some output with a factor that is not 0, and
nothing makes a number of what is none; so the sum of a tile's outputs, a witness, is finite only where all of them are
what a direct convolution would have made, up to rounding. Where it is not, the outputs are made again from the pixels
and the filter as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fuseline.targets.cpu.emit.packing import over_axes
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan
from fuseline.targets.cpu.families.winograd.tiles import TileReader
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value


class DirectTile:
    """Writes `pixels[output][column]` of a tile; `filter` holds the filter as it is behind the transformed one."""

    def __init__(self, plan: WinogradPlan, reader: TileReader, filter_: MemRef, pixels: MemRef) -> None:
        self.plan, self.reader, self.filter, self.pixels = plan, reader, filter_, pixels
        self.kernel = reader.kernel
        self.align = self.kernel.machine.vector_bytes

    def replace(self, tile: Operand, number: Operand, witness: Value) -> None:
        """Make the pixels of pass `number` of a tile again unless the `witness`, a sum of all of them, is finite in
        every lane."""
        kernel = self.kernel
        finite = kernel.compare("eq", kernel.reduce("add", kernel.sub(witness, witness)), kernel.const(0, "f32"))
        kernel.when(finite, lambda: (), lambda: self._compute(tile, number))

    def _compute(self, tile: Operand, number: Operand) -> tuple[Operand, ...]:
        kernel, plan = self.kernel, self.plan
        zero = kernel.const(0, "f32", plan.lanes)
        size = plan.blocking.outputs * plan.pass_width
        kernel.loop(0, size, plan.lanes, lambda at: kernel.store(self.pixels, at, zero, align=self.align))
        place = self.reader.place(tile)

        def piece(first: Operand) -> tuple[Operand, ...]:
            count = kernel.min(kernel.sub(plan.vectors, first), plan.piece)
            self.reader.fill(place, first, count)
            self._add_piece(number, kernel.mul(first, plan.lanes))
            return ()

        kernel.loop(0, plan.vectors, plan.piece, piece)
        return ()

    def _add_piece(self, number: Operand, first: Operand) -> None:
        """What the channels in the patch, `first` and following, add to every pixel."""
        kernel, plan = self.kernel, self.plan
        channels = kernel.min(kernel.sub(plan.loops.channels, first), plan.piece * plan.lanes)
        outputs = [axis.outputs for axis in plan.blocking.axes]
        strides = [prod(outputs[i + 1 :]) * plan.pass_width for i in range(len(outputs))]

        def pixel(offset: Operand, at: tuple[Operand, ...]) -> None:
            patch = self._patch_index(at)

            def vector(column: Operand) -> tuple[Operand, ...]:
                target = kernel.add(offset, column)
                before = kernel.load(self.pixels, target, plan.lanes, align=self.align)
                weights = kernel.add(kernel.mul(kernel.mul(number, plan.loops.taps), plan.loops.channels), first)
                total = self._over_taps(0, patch, (weights, column), channels, before)
                kernel.store(self.pixels, target, total, align=self.align)
                return ()

            kernel.loop(0, plan.pass_width, plan.lanes, vector)

        over_axes(kernel, outputs, strides, pixel)

    def _patch_index(self, at: Sequence[Operand]) -> Operand:
        kernel, index = self.kernel, 0
        for i, stride in zip(at, self.reader.strides, strict=True):
            index = kernel.add(index, kernel.mul(i, stride))
        return index

    def _over_taps(
        self, axis: int, patch: Operand, weights: tuple[Operand, Operand], channels: Operand, total: Value
    ) -> Value:
        """`total` and all products of a window; `weights` are the row of the filter, of `pass_width` columns, and the
        column in it."""
        kernel, plan, windows = self.kernel, self.plan, self.plan.loops.windows
        row, column = weights
        if axis == len(windows):
            return self._over_channels(patch, weights, channels, total)
        rows = prod(window.taps for window in windows[axis + 1 :]) * plan.loops.channels

        def tap(t: Operand, held: Value) -> tuple[Operand, ...]:
            here = kernel.add(patch, kernel.mul(t, self.reader.strides[axis]))
            return (self._over_taps(axis + 1, here, (kernel.add(row, kernel.mul(t, rows)), column), channels, held),)

        return kernel.loop(0, windows[axis].taps, 1, tap, [total])[0]

    def _over_channels(
        self, patch: Operand, weights: tuple[Operand, Operand], channels: Operand, total: Value
    ) -> Value:
        kernel, plan = self.kernel, self.plan
        row, column = weights

        def channel(c: Operand, held: Value) -> tuple[Operand, ...]:
            pixel = kernel.splat(kernel.load(self.reader.patch, kernel.add(patch, c)), plan.lanes)
            at = kernel.add(kernel.mul(kernel.add(row, c), plan.pass_width), column)
            weight = kernel.load(self.filter, kernel.add(at, plan.filter_elements), plan.lanes, align=self.align)
            return (kernel.fma(pixel, weight, held),)

        return kernel.loop(0, channels, 1, channel, [total])[0]
