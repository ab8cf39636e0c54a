"""Tensors read with borders that repeat them (`analysis/borders.py`): neighbouring elements stay neighbours inside.

Their index arithmetic, done lane by lane, would gather each element by itself. A coordinate that all lanes share is
folded back by itself; where the border runs across the lanes, a branch takes the fast way (all lanes inside, a run of
elements) or the slow one (folded per lane).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.ir import Operation

from fuseline.analysis.borders import BorderRead, border_read
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.folded_address import folded
from fuseline.targets.cpu.emit.inside import both, decided, run_inside
from fuseline.targets.cpu.emit.puller import Puller
from fuseline.targets.cpu.kernel_ir.types import Operand, Value


def bordered(e: Puller, op: Operation, loops: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value | None:
    """The element that a gather reads at a point of its loops; None where it is no tensor with borders."""
    read = border_read(op, e.view.shapes)
    return _Bordered(e, read, lanes, active).at(loops) if read is not None else None


class _Bordered:
    def __init__(self, e: Puller, read: BorderRead, lanes: int, active: Operand | None) -> None:
        self.e, self.kernel, self.read, self.lanes, self.active = e, e.kernel, read, lanes, active
        self.sizes = [e.buffers.operand(size) for size in e.view.shapes.dims(read.source)]

    def at(self, loops: Sequence[AnyIndex]) -> Value:
        """The element at a point."""
        places, across = list[Index](), list[int]()
        for i, (axis, size) in enumerate(zip(self.read.axes, self.sizes, strict=True)):
            buffers = self.e.buffers
            place = buffers.plus(buffers.resolve(loops[axis.loop], self.lanes), Index(-axis.low), self.lanes)
            inside = axis.mode is None or decided(place, size, self._live) is True
            if not inside and not place.uniform:
                across.append(i)
            places.append(place if inside or not place.uniform else self._folded(place, i))
        return self._pull(places) if not across else self._across(places, across)

    @property
    def _live(self) -> Operand:
        return self.lanes if self.active is None else self.active

    def _pull(self, places: Sequence[AnyIndex]) -> Value:
        return self.e.pull(self.read.source, places, self.lanes, self.active)

    def _across(self, places: Sequence[Index], across: Sequence[int]) -> Value:
        kernel = self.kernel
        runs = all(places[i].vector is None and places[i].stride >= 0 for i in across)

        def slow() -> Value:
            return self._pull([self._folded(at, i) if i in across else at for i, at in enumerate(places)])

        if not runs:
            return slow()
        conditions = [c for i in across for c in run_inside(kernel, places[i], self.sizes[i], self._live)]
        fast = reduce(lambda a, b: both(kernel, a, b), conditions)
        wide = [lambda: (kernel.splat(self._pull(places), self.lanes),), lambda: (kernel.splat(slow(), self.lanes),)]
        return kernel.when(fast, *wide)[0]

    def _folded(self, place: Index, axis: int) -> Index:
        mode, size = self.read.axes[axis].mode, self.sizes[axis]
        assert mode is not None
        if place.uniform:
            return Index(folded(self.kernel, place.base, size, mode))
        found = folded(self.kernel, self.e.buffers.vector(place, self.lanes), size, mode)
        assert isinstance(found, Value)
        return Index(0, 0, found)
