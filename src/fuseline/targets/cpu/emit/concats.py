"""Values of concats at a point: code linear in the parts, whatever their sizes and however concats lie inside each
other.

coordinate all lanes share      a search among the borders: one comparison per level, the part's code once
run of lanes along the axis     parts asked in turn (many: searched) whether one holds the whole run, else lane by lane
other lanes along the axis      every part at a coordinate held inside it, and the lanes picked
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import tensor
from xdsl.ir import OpResult

from fuseline.analysis.moves import Source
from fuseline.ir.dim import lower_bound
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.emit.inside import both, decided, run_inside
from fuseline.targets.cpu.emit.lane_coordinates import lane_sources
from fuseline.targets.cpu.emit.puller import Puller
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

ASKED_IN_TURN = 6
"""Up to this many parts are asked one after the other; more are searched, so that branches nest no deeper than that."""


def concat(e: Puller, value: OpResult, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
    """`tensor.concat`: the part that the coordinate along the axis falls into."""
    op = value.op
    assert isinstance(op, tensor.ConcatOp)
    return _Concat(e, op, index, lanes, active).value()


@dataclass(frozen=True, slots=True)
class _Part:
    """A part and its size along the axis, and the coordinate counted from its beginning; `first`: it begins at 0;
    `empty`: it may be empty."""

    source: Source[AnyIndex]
    inner: Index
    size: Operand
    first: bool
    empty: bool


class _Concat:
    """One concat at one point."""

    def __init__(
        self, e: Puller, op: tensor.ConcatOp, index: Sequence[AnyIndex], lanes: int, active: Operand | None
    ) -> None:
        self.e, self.kernel, self.lanes, self.active = e, e.kernel, lanes, active
        self.axis = op.dim.value.data
        self.dtype = dtype_of(op.result.type)
        self.coordinate = e.buffers.resolve(index[self.axis], lanes)
        self.live: Operand = lanes if active is None else active
        self.parts = self._possible_parts(
            lane_sources(e, op, [*index[: self.axis], self.coordinate, *index[self.axis + 1 :]], lanes)
        )

    def value(self) -> Value:
        """The elements of the concat."""
        if len(self.parts) == 1:
            return self._part(self.parts[0])
        if self.coordinate.uniform:
            return self._searched(self.parts)
        if self.coordinate.vector is not None or self.coordinate.stride < 0:
            return self._lane_by_lane()
        return self._turn(0) if len(self.parts) <= ASKED_IN_TURN else self._searched_run()

    # parts ------------------------------------------------------------------------------------------------------------

    def _possible_parts(self, sources: Sequence[Source[AnyIndex]]) -> list[_Part]:
        """The parts that some lane may touch; the last one where none is known to be touched."""
        parts = [self._part_of(source, first=position == 0) for position, source in enumerate(sources)]
        return [part for part in parts if decided(part.inner, part.size, self.live) is not False] or parts[-1:]

    def _part_of(self, source: Source[AnyIndex], *, first: bool) -> _Part:
        (guard,) = source.guards
        inner = self.e.buffers.resolve(guard.coordinate, self.lanes)
        return _Part(source, inner, self.e.buffers.operand(guard.size), first, (lower_bound(guard.size) or 0) < 1)

    def _part(self, part: _Part, inner: Index | None = None) -> Value:
        at = list(part.source.at)
        at[self.axis] = part.inner if inner is None else inner
        return self.e.pull(part.source.value, at, self.lanes, self.active)

    def _wide(self, value: Value) -> Value:
        return self.kernel.splat(value, self.lanes)

    def _either(self, condition: Value, then: Callable[[], Value], otherwise: Callable[[], Value]) -> Value:
        return self.kernel.when(condition, lambda: (self._wide(then()),), lambda: (self._wide(otherwise()),))[0]

    # ways to find the part --------------------------------------------------------------------------------------------

    def _searched(self, parts: Sequence[_Part]) -> Value:
        """The part that the first lane falls into, by halving."""
        if len(parts) == 1:
            return self._part(parts[0])
        middle = len(parts) // 2
        before = self.kernel.compare("lt", parts[middle].inner.base, 0)
        return self._either(before, lambda: self._searched(parts[:middle]), lambda: self._searched(parts[middle:]))

    def _turn(self, number: int) -> Value:
        """The first part from `number` on that holds the whole run of lanes."""
        if number == len(self.parts):
            return self._lane_by_lane()
        part = self.parts[number]
        held = both(self.kernel, *run_inside(self.kernel, part.inner, part.size, self.live))
        return self._either(held, lambda: self._part(part), lambda: self._turn(number + 1))

    def _searched_run(self) -> Value:
        """A run of lanes among many parts: the part that holds its first lane, or lane by lane where that part ends
        before the last."""
        kernel = self.kernel
        reach = kernel.mul(kernel.sub(self.live, 1), self.coordinate.stride)

        def search(parts: Sequence[_Part]) -> tuple[Value, Value]:
            if len(parts) == 1:
                return self._whole_run(parts[0], reach)
            middle = len(parts) // 2
            before = kernel.compare("lt", parts[middle].inner.base, 0)
            value, whole = kernel.when(before, lambda: search(parts[:middle]), lambda: search(parts[middle:]))
            return value, whole

        value, whole = search(self.parts)
        return self._either(whole, lambda: value, self._lane_by_lane)

    def _whole_run(self, part: _Part, reach: Operand) -> tuple[Value, Value]:
        """The run out of `part`, and whether that holds all of it: the last lane is `reach` behind the first."""
        kernel = self.kernel
        ends_inside = kernel.compare("lt", kernel.add(part.inner.base, reach), part.size)
        nothing = kernel.const(0, self.dtype, self.lanes), kernel.const(0, "i1")
        value, whole = kernel.when(
            ends_inside, lambda: (self._wide(self._part(part)), kernel.const(1, "i1")), lambda: nothing
        )
        return value, whole

    def _lane_by_lane(self) -> Value:
        """Every part at a coordinate held inside it, an empty one left out, and of each the lanes that lie in it."""
        total: Value | None = None
        for part in self.parts:
            total = self._picked(part, total)
        assert total is not None
        return total

    def _picked(self, part: _Part, total: Value | None) -> Value:
        kernel = self.kernel
        inner = self.e.buffers.vector(part.inner, self.lanes)
        held = kernel.min(inner if part.first else kernel.max(inner, 0), kernel.sub(part.size, 1))

        def lanes_of(before: Value | None) -> Value:
            mine = self._wide(self._part(part, Index(0, 0, held)))
            return mine if before is None else kernel.select(kernel.compare("ult", inner, part.size), mine, before)

        if not part.empty:
            return lanes_of(total)
        before = total if total is not None else kernel.const(0, self.dtype, self.lanes)
        return kernel.when(kernel.compare("gt", part.size, 0), lambda: (lanes_of(before),), lambda: (before,))[0]
