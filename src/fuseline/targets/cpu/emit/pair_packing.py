"""Columns of narrow integers packed into scratch in pairs: `[reduction / 2][width][2]`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from fuseline.analysis.segment_boundaries import split_at
from fuseline.targets.cpu.emit.packing import PanelPacker, over_axes
from fuseline.targets.cpu.emit.squares import transpose
from fuseline.targets.cpu.kernel_ir.types import Operand, Value


class PairPacker(PanelPacker):
    """Two steps of the innermost reduction axis side by side in each column, an odd last one beside a zero. The axis'
    extent is known, and so are the `cuts`, which are even."""

    def copy(
        self, extents: Sequence[Operand], strides: Sequence[Operand], actives: Sequence[Operand | None],
        read: Callable[..., Value],
        cuts: Sequence[Collection[int]] = (),
    ) -> None:  # fmt: skip
        """Columns are neighbours in memory: vectors of two steps are interleaved. `read(indices, vector, active)`."""
        kernel, lanes = self.kernel, self.lanes

        def pair(at: tuple[Operand, ...], offset: Operand, k: Operand, alone: bool) -> None:
            place = kernel.add(offset, kernel.mul(k, strides[-1]))
            for v, active in enumerate(actives):
                first = read((*at, k), v, active)
                second = kernel.const(0, *first.type) if alone else read((*at, kernel.add(k, 1)), v, active)
                mask = [i // 2 + (i % 2) * lanes for i in range(2 * lanes)]
                kernel.store(self.buffer, kernel.add(place, v * 2 * lanes), kernel.shuffle(first, second, mask))

        def body(offset: Operand, at: tuple[Operand, ...]) -> None:
            def whole(k: Operand) -> tuple[Operand, ...]:
                pair(at, offset, k, False)
                return ()

            for begin, end in split_at(extents[-1], cuts[-1] if cuts else ()):
                assert isinstance(begin, int) and isinstance(end, int)
                even = begin + (end - begin) // 2 * 2
                kernel.loop(begin, even, 2, whole)
                if even < end:
                    pair(at, offset, even, True)

        over_axes(kernel, extents[:-1], strides[:-1], body, cuts[:-1])

    def turn(
        self,
        extents: Sequence[Operand],
        strides: Sequence[Operand],
        vectors: int,
        read: Callable[..., Value],
        cuts: Sequence[Collection[int]] = (),
    ) -> None:
        """The innermost reduction loop is contiguous: pairs are turned as elements of twice the width. `read(indices,
        column, active)` gives twice as many steps as there are lanes; steps beyond the extent are 0, and stored into
        the buffer's slack."""
        kernel, lanes = self.kernel, self.lanes

        def body(offset: Operand, at: tuple[Operand, ...]) -> None:
            def square(k: Operand, active: int | None) -> None:
                def vector(v: Operand) -> tuple[Operand, ...]:
                    first = kernel.mul(v, lanes)
                    columns = [read((*at, k), kernel.add(first, i), active) for i in range(lanes)]
                    place = kernel.add(kernel.add(offset, kernel.mul(k, strides[-1])), kernel.mul(first, 2))
                    for i, row in enumerate(
                        transpose(kernel, [kernel.bitcast(self._known(column, active), "i32") for column in columns])
                    ):
                        kernel.store(
                            self.buffer, kernel.add(place, kernel.mul(strides[-1], 2 * i)), kernel.bitcast(row, "i16")
                        )
                    return ()

                kernel.loop(0, vectors, 1, vector)

            def whole(k: Operand) -> tuple[Operand, ...]:
                square(k, None)
                return ()

            for begin, end in split_at(extents[-1], cuts[-1] if cuts else ()):
                assert isinstance(begin, int) and isinstance(end, int)
                last = begin + (end - begin) // (2 * lanes) * 2 * lanes
                kernel.loop(begin, last, 2 * lanes, whole)
                if last < end:
                    square(last, end - last)

        over_axes(kernel, extents[:-1], strides[:-1], body, cuts[:-1])

    def _known(self, column: Value, active: int | None) -> Value:
        """What lanes beyond the extent hold is undefined: zeros."""
        if active is None:
            return column
        return self.kernel.select(self.kernel.mask(active, 2 * self.lanes), column, self.kernel.const(0, *column.type))
