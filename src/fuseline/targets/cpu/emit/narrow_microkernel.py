"""The reduction of a register tile over narrow integers, added up in i32: by single elements, two steps at a time, or
four of 8 bits."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.targets.cpu.emit.microkernel import STEPS_PER_ITERATION, Step, TileReduction
from fuseline.targets.cpu.kernel_ir.types import Address, Operand, Value


class NarrowReduction(TileReduction):
    """Steps of one element: it is broadcast beside a zero, so that what stands beside a column's number does not
    count."""

    multiplied = "i16"

    def _step(
        self,
        addresses: Sequence[Address] | None,
        column: Operand,
        at: Sequence[Operand],
        accumulators: tuple[Value, ...],
    ) -> tuple[Value, ...]:
        kernel = self.kernel
        columns = [kernel.bitcast(kernel.cast(self.columns(column, at, v), "i32"), "i16") for v in range(self.vectors)]
        return self._products(columns, [self._alone(addresses, at, row) for row in range(self.rows)], accumulators)

    def _alone(self, addresses: Sequence[Address] | None, at: Sequence[Operand], row: int) -> Value:
        """The element of a row in the low half of 32 bits."""
        if addresses is not None:
            element = self.kernel.load(addresses[row])
        else:
            assert self.pulled is not None
            element = self.pulled(at, row)
        return self.kernel.cast(element, "i32", unsigned=True)

    def _products(
        self, columns: Sequence[Value], elements: Sequence[Value], accumulators: Sequence[Value]
    ) -> tuple[Value, ...]:
        kernel, out = self.kernel, list(accumulators)
        for row, element in enumerate(elements):
            spread = kernel.bitcast(kernel.splat(element, accumulators[0].type.lanes), self.multiplied)
            for v in range(self.vectors):
                i = row * self.vectors + v
                out[i] = self._dot(spread, columns[v], out[i])
        return tuple(out)

    def _dot(self, spread: Value, columns: Value, total: Value) -> Value:
        return self.kernel.dot_pairs(spread, columns, total)


class PairReduction(NarrowReduction):
    """The innermost axis two steps at a time, an odd last step on its own; columns come in pairs too. Rows must have
    addresses."""

    together = 2

    def _loop(self, level: int, lo: Operand, hi: Operand, point: Step, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        if level != len(self.axes) - 1:
            return super()._loop(level, lo, hi, point, carried)
        assert (
            isinstance(lo, int) and isinstance(hi, int) and lo % self.together == 0
        )  # no edges within pairs, columns are packed for a known extent
        pairs, rest = divmod(hi - lo, self.together)
        unroll = max(
            u for u in range(1, max(STEPS_PER_ITERATION, 16 // (self.rows * self.vectors)) + 1) if pairs % u == 0
        )

        def body(i: Operand, *values: Value) -> tuple[Value, ...]:
            for u in range(unroll):
                values = point((self.kernel.add(i, self.together * u),), values)
            return values

        if pairs == unroll:
            carried = body(lo, *carried)
        elif pairs:
            carried = self.kernel.loop(lo, hi - rest, self.together * unroll, body, carried)
        return point((hi - rest,), carried) if rest else carried

    def _step(
        self,
        addresses: Sequence[Address] | None,
        column: Operand,
        at: Sequence[Operand],
        accumulators: tuple[Value, ...],
    ) -> tuple[Value, ...]:
        assert addresses is not None
        kernel = self.kernel
        columns = [self._widened(self.columns(column, at, v)) for v in range(self.vectors)]
        alone = bool(self._rest) and at[-1] == kernel.add(self.axes[-1].first, kernel.sub(self._extent, self._rest))
        elements = [self._last(addresses, at, row) if alone else self._pair(addresses[row]) for row in range(self.rows)]
        return self._products(columns, elements, accumulators)

    def _widened(self, columns: Value) -> Value:
        """Columns as they are multiplied."""
        return self.kernel.cast(columns, "i16")

    @property
    def _extent(self) -> int:
        extent = self.axes[-1].extent
        assert isinstance(extent, int)
        return extent

    @property
    def _rest(self) -> int:
        """The last steps, too few for one of the kernel's."""
        return self._extent % self.together

    def _pair(self, address: Address) -> Value:
        return self.kernel.bitcast(self.kernel.load(address, lanes=self.together), "i32")

    def _last(self, addresses: Sequence[Address], at: Sequence[Operand], row: int) -> Value:
        """The odd last step of a row."""
        return self._alone(addresses, at, row)


class OverreadingPairs(PairReduction):
    """Rows with one element or more behind each: an odd last step is read as a pair, whose other half meets a zero of
    the columns."""

    def _last(self, addresses: Sequence[Address], at: Sequence[Operand], row: int) -> Value:
        return self._pair(addresses[row])


class QuadReduction(PairReduction):
    """Bytes: the innermost axis four steps at a time, the last ones beside zeros; rows are without a sign, columns with
    one, and as they lie."""

    together = 4
    multiplied = "i8"

    def _widened(self, columns: Value) -> Value:
        return columns

    def _last(self, addresses: Sequence[Address], at: Sequence[Operand], row: int) -> Value:
        found = self.kernel.load(addresses[row], lanes=self.together, active=self._rest)
        return self.kernel.bitcast(found, "i32")

    def _dot(self, spread: Value, columns: Value, total: Value) -> Value:
        return self.kernel.dot_quads(spread, columns, total)


class OverreadingQuads(QuadReduction):
    """Rows with three elements or more behind each: the last steps are read with what follows, which meets zeros of the
    columns."""

    def _last(self, addresses: Sequence[Address], at: Sequence[Operand], row: int) -> Value:
        return self._pair(addresses[row])
