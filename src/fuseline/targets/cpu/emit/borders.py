"""Values with borders: pads and inserted slices, read without ever leaving their buffers.

A coordinate that all lanes share is clamped into the source and the result chosen by a scalar condition. Where the
border runs across the lanes, a branch takes the fast way (all lanes inside one part) or the slow one (clamped per lane,
then selected).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import IndexType
from xdsl.ir import BlockArgument, OpResult

from fuseline.analysis.moves import Guard
from fuseline.ir.dim import lower_bound
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.emit.inside import both, decided, run_inside
from fuseline.targets.cpu.emit.lane_coordinates import lane_sources
from fuseline.targets.cpu.emit.puller import Puller
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

Pull = Callable[[Sequence[AnyIndex]], Value]


def pad(e: Puller, value: OpResult, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
    """`tensor.pad`: the source where the point lies inside it, else the pad value."""
    op = value.op
    assert isinstance(op, tensor.PadOp)
    (source,) = lane_sources(e, op, index, lanes)
    border = _pad_value(e, op, index, lanes)
    return (
        _Window(e, value, lanes, active)
        .of(source.guards)
        .read(source.at, lambda at: e.pull(source.value, at, lanes, active), lambda: border)
    )


def _pad_value(e: Puller, op: tensor.PadOp, index: Sequence[AnyIndex], lanes: int) -> Value:
    last = op.region.block.last_op
    assert last is not None
    chosen = last.operands[0]
    if isinstance(chosen, BlockArgument) and chosen.owner is op.region.block:
        return e.buffers.vector(e.buffers.resolve(index[chosen.index], lanes), lanes)
    found = e.scalar(chosen)
    assert not isinstance(chosen.type, IndexType)
    return found


def insert_slice(e: Puller, value: OpResult, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
    """`tensor.insert_slice` with unit strides: the source inside its place, else the destination."""
    box, rest = lane_sources(e, value.op, index, lanes)
    window = _Window(e, value, lanes, active).of(box.guards)
    return window.read(
        box.at, lambda at: e.pull(box.value, at, lanes, active), lambda: e.pull(rest.value, rest.at, lanes, active)
    )


class _Window:
    """A box in which a source is defined; `read` gives the source inside it and something else outside."""

    def __init__(self, e: Puller, value: OpResult, lanes: int, active: Operand | None) -> None:
        self.e, self.lanes, self.active = e, lanes, active
        self.dtype = dtype_of(value.type)
        self.shared: list[tuple[int | None, Index, Operand]] = []
        self.across: list[tuple[int | None, Index, Operand]] = []
        self.possibly_empty = False
        self.never = False

    def of(self, guards: Iterable[Guard[AnyIndex]]) -> _Window:
        """The window with these limits. A limit known to hold, or never to, needs no code."""
        for guard in guards:
            inner, size = self.e.buffers.resolve(guard.coordinate, self.lanes), self.e.buffers.operand(guard.size)
            holds = decided(inner, size, self.lanes if self.active is None else self.active)
            if holds is not None:
                self.never = self.never or not holds
                continue
            self.possibly_empty = self.possibly_empty or (lower_bound(guard.size) or 0) < 1
            (self.shared if inner.uniform else self.across).append((guard.axis, inner, size))
        return self

    def read(self, index: Sequence[AnyIndex], source: Pull, outside: Callable[[], Value]) -> Value:
        """`source` at `index` where it is inside, else `outside`."""
        if self.never:
            return outside()
        if self.across:
            return self._read_across(index, source, outside)
        kernel = self.e.kernel
        inside = self._all(kernel.compare("ult", inner.base, size) for _, inner, size in self.shared)
        if inside is None:
            return source(index)
        if inside.op == "const":
            return source(index) if inside.attr else outside()
        if self.possibly_empty:
            return kernel.when(inside, lambda: (self._wide(source(index)),), lambda: (self._wide(outside()),))[0]
        return kernel.select(inside, source(self._clamped(index, self.shared)), outside())

    def _wide(self, value: Value) -> Value:
        return self.e.kernel.splat(value, self.lanes)

    def _all(self, conditions: object) -> Value | None:
        total: Value | None = None
        for condition in conditions:  # pyright: ignore[reportGeneralTypeIssues]
            total = condition if total is None else both(self.e.kernel, total, condition)
        return total

    def _clamped(self, index: Sequence[AnyIndex], axes: Sequence[tuple[int | None, Index, Operand]]) -> list[AnyIndex]:
        kernel, out = self.e.kernel, list(index)
        for axis, inner, size in axes:
            if axis is None:
                continue
            whole = inner.base if inner.uniform else self.e.buffers.vector(inner, self.lanes)
            held = kernel.min(kernel.max(whole, 0), kernel.sub(size, 1))
            out[axis] = Index(held) if inner.uniform else Index(0, 0, held)
        return out

    # borders across the lanes -----------------------------------------------------------------------------------------

    def _read_across(self, index: Sequence[AnyIndex], source: Pull, outside: Callable[[], Value]) -> Value:
        kernel = self.e.kernel
        fast = self._all(
            [
                *(kernel.compare("ult", inner.base, size) for _, inner, size in self.shared),
                *(c for _, inner, size in self.across for c in self._all_inside(inner, size)),
            ]
        )
        assert fast is not None
        if fast.op == "const" and fast.attr:
            return source(index)
        return kernel.when(fast, lambda: (self._wide(source(index)),), lambda: (self._slow(index, source, outside),))[0]

    def _all_inside(self, inner: Index, size: Operand) -> list[Value]:
        """Conditions under which no lane leaves `[0, size)`; a coordinate that is no run of lanes never takes the fast
        way."""
        if inner.vector is not None or inner.stride < 0:
            return [self.e.kernel.const(0, "i1")]
        return run_inside(self.e.kernel, inner, size, self.lanes if self.active is None else self.active)

    def _slow(self, index: Sequence[AnyIndex], source: Pull, outside: Callable[[], Value]) -> Value:
        """Lane by lane. What lies outside is made once, whether or not the source has elements."""
        rest = self._wide(outside())
        if not self.possibly_empty:
            return self._slow_nonempty(index, source, rest)
        nonempty = self._all(self._nonempty())
        assert nonempty is not None
        return self.e.kernel.when(nonempty, lambda: (self._slow_nonempty(index, source, rest),), lambda: (rest,))[0]

    def _nonempty(self) -> list[Value]:
        return [self.e.kernel.compare("gt", size, 0) for _, _, size in (*self.shared, *self.across)]

    def _slow_nonempty(self, index: Sequence[AnyIndex], source: Pull, outside: Value) -> Value:
        kernel = self.e.kernel
        held = self._clamped(index, [*self.shared, *self.across])
        conditions = [
            kernel.splat(kernel.compare("ult", inner.base, size), self.lanes) for _, inner, size in self.shared
        ]
        conditions += [
            kernel.compare("ult", self.e.buffers.vector(inner, self.lanes), size) for _, inner, size in self.across
        ]
        inside = conditions[0]
        for condition in conditions[1:]:
            inside = kernel.bitand(inside, condition)
        return kernel.select(inside, self._wide(source(held)), outside)
