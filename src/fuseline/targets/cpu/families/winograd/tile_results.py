"""How the pixels of a tile leave: the epilogue pixel by pixel, vectors of columns at a time; a row of pixels at a time
where a result lies along it (`root/turned_stores.py`).

    pixels[output][column]      channels last: a pixel's columns are neighbours, and are stored as they are
                                channels first: a row of pixels is turned in registers, and stored column by column
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from fuseline.analysis.structured import splat_value
from fuseline.targets.cpu.combinators.stage import in_turn
from fuseline.targets.cpu.combinators.tail import over_panels
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index, point_at
from fuseline.targets.cpu.emit.packing import over_axes
from fuseline.targets.cpu.families.contraction.tile import place
from fuseline.targets.cpu.families.root.results import RootResults
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan, ends_with_tiles
from fuseline.targets.cpu.families.winograd.tiles import TileReader
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value


class TileResults:
    """Stores what is in `pixels` by `results`."""

    def __init__(self, plan: WinogradPlan, results: RootResults, reader: TileReader, pixels: MemRef) -> None:
        self.plan, self.results, self.reader, self.pixels = plan, results, reader, pixels
        self.kernel, self.buffers, self.root = results.kernel, results.buffers, results.root
        self.align = results.kernel.machine.vector_bytes

    def store(self, tile: Operand, number: Operand) -> None:
        """The epilogue at the pixels of a tile that exist."""
        kernel, plan = self.kernel, self.plan
        corner = self.reader.place(tile)
        outputs = [axis.outputs for axis in plan.blocking.axes]
        extents = [
            f.outputs if ends_with_tiles(plan, i)
            else kernel.min(kernel.sub(self.buffers.operand(axis.outputs), origin), f.outputs)
            for i, (axis, f, origin) in enumerate(
                zip(plan.loops.windows, plan.blocking.axes, corner.origin, strict=True)
            )
        ]  # fmt: skip
        strides = [prod(outputs[i + 1 :]) * plan.pass_width for i in range(len(outputs))]

        def loops(at: Sequence[Operand]) -> list[AnyIndex]:
            places = dict(corner.outer)
            for axis, first, i in zip(plan.loops.windows, corner.origin, at, strict=True):
                places[axis.pixel] = kernel.add(first, i)
            return point_at(self.root.rank, places)

        if self.results.takes_tiles(self.pixels):
            over_axes(
                kernel, extents[:-1], strides[:-1],
                lambda offset, at: self._rows(lambda i: loops((*at, i)), offset, extents[-1], number),
            )  # fmt: skip
        else:
            over_axes(kernel, extents, strides, lambda offset, at: self._columns(loops(at), offset, number))

    def _rows(
        self, loops: Callable[[Operand], list[AnyIndex]], offset: Operand, exist: Operand, number: Operand
    ) -> None:
        """The epilogue of a row of pixels, of which so many `exist`, where results lie along it."""
        kernel, plan, lanes = self.kernel, self.plan, self.plan.lanes
        vectors, height = plan.pass_width // lanes, plan.blocking.axes[-1].outputs
        first = kernel.mul(number, vectors)

        def cut(v: Operand, elements: int) -> None:
            start = kernel.add(offset, kernel.mul(kernel.sub(v, first), lanes))
            self.results.store_tile(
                self.pixels,
                height,
                [elements if elements < lanes else None],
                lambda i, _: self._at(loops(i), kernel.mul(v, lanes)),
                exist,
                lambda i, _: kernel.add(start, kernel.mul(i, plan.pass_width)),
                self._started,
            )

        over_panels(
            kernel, divmod(plan.loops.columns, lanes), lanes, (first, kernel.add(first, vectors)), cut, anywhere=True
        )

    def _columns(self, loops: list[AnyIndex], offset: Operand, number: Operand) -> None:
        """The epilogue of one pixel: whole vectors of columns, then the rest."""
        kernel, plan, lanes = self.kernel, self.plan, self.plan.lanes
        vectors, (whole, rest) = plan.pass_width // lanes, divmod(plan.loops.columns, lanes)
        first = kernel.mul(number, vectors)

        def vector(v: Operand, active: Operand | None, value: Value) -> None:
            self._vector(loops, kernel.mul(kernel.add(first, v), lanes), active, value)

        def cut(v: Operand, elements: int) -> None:
            place = kernel.add(offset, kernel.mul(kernel.sub(v, first), lanes))
            value = kernel.load(self.pixels, place, lanes, align=self.align)
            self._vector(loops, kernel.mul(v, lanes), elements if elements < lanes else None, value)

        if plan.loops.columns % plan.pass_width == 0:
            in_a_loop = kernel.compact or (plan.form is not None and not plan.form.vectors)
            in_turn(kernel, self.pixels, offset, lanes, [None] * vectors, vector, written_out=not in_a_loop)
        else:
            over_panels(kernel, (whole, rest), lanes, (first, kernel.add(first, vectors)), cut, anywhere=True)

    def _vector(self, loops: Sequence[AnyIndex], column: Operand, active: Operand | None, value: Value) -> None:
        at = self._at(loops, column)
        self.results.finish(at, active, self._started(value, at, active))

    def _at(self, loops: Sequence[AnyIndex], column: Operand) -> list[AnyIndex]:
        """A pixel at a vector of columns."""
        at = list(loops)
        place(self.buffers, at, self.plan.loops.contraction.column, Index(column, 1 if self.plan.lanes > 1 else 0))
        return at

    def _started(self, value: Value, at: Sequence[AnyIndex], active: Operand | None) -> Value:
        """The sums with what they start from."""
        if splat_value(self.root.outputs[0]) == 0:
            return value
        return self.kernel.add(value, self.results.start(list(at), active))
