"""How a kernel reads the right operand of a multiply-add root: column vectors, in each of its modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fuseline.ir import dim as d
from fuseline.ir.costs import LINE_BYTES
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.combinators.prefetch import FIRST_CACHE, prefetch_requests
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.microkernel import Columns, PrefetchRequests
from fuseline.targets.cpu.emit.packing import PanelPacker
from fuseline.targets.cpu.emit.pair_packing import PairPacker
from fuseline.targets.cpu.families.contraction.access import contiguous_reads, loop_boundaries
from fuseline.targets.cpu.families.contraction.axes import Axis
from fuseline.targets.cpu.families.contraction.axes import Operand as RootOperand
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.contraction.reduction_blocks import WHOLE
from fuseline.targets.cpu.families.contraction.tile import place
from fuseline.targets.cpu.kernel_ir.types import BYTES, MemRef, Operand, Value


def column_strides(plan: ContractionPlan, *, slack: int) -> list[int | Dim]:
    """Elements between two steps of each reduction axis in a panel, whose innermost extent is rounded up to `slack`
    steps."""
    strides: list[Dim] = []
    step: Dim = plan.width
    for i, length in enumerate(reversed(plan.extents_at_once)):
        strides.append(step)
        extent = length if i else d.mul(d.floor_div(d.add(length, slack - 1), slack), slack)
        step = d.mul(step, extent)
    return [*reversed(strides), step]


def reduction_cuts(plan: ContractionPlan, operand: RootOperand, *, step: int = 1) -> list[tuple[int, ...]]:
    """Where to cut the axes of the reduction for an operand that is evaluated along them; the innermost at multiples of
    `step`."""
    loops, last = plan.loops, len(plan.loops.reduction) - 1
    return [
        ()
        if plan.cut is not None and axis in plan.cut.steps  # a block counts from where it begins
        else loop_boundaries(
            plan.view, operand.value, operand.map, axis.inner, loops.extents, step=step if i == last else 1
        )
        for i, axis in enumerate(loops.reduction)
    ]


class ColumnReader:
    """The right operand. `enter` a panel, then read its vectors by the column index that the reduction axes add up
    to."""

    def __init__(self, plan: ContractionPlan, emitter: BodyEmitter) -> None:
        self.plan, self.emitter = plan, emitter
        self.kernel, self.buffers = emitter.kernel, emitter.buffers
        self.buffer = self._scratch() if plan.rhs_mode == "packed" else None
        self.base: Operand = 0
        self.outer: Mapping[Axis, Operand] = {}
        self.panel: Operand = 0
        self.actives: Sequence[Operand | None] = ()
        self.piece = WHOLE

    @staticmethod
    def strides(plan: ContractionPlan, emitter: BodyEmitter) -> list[Operand]:
        """What a step of each reduction axis adds to the column index."""
        buffers, reduction = emitter.buffers, plan.loops.reduction
        if plan.rhs_mode == "constant":
            assert plan.packed is not None
            return [plan.packed.strides[axis.inner] for axis in reduction]
        if plan.rhs_mode == "packed":
            return [buffers.operand(s) for s in column_strides(plan, slack=plan.run)[:-1]]
        if plan.rhs_mode == "direct":
            return [buffers.operand(plan.loops.rhs.stride(axis)) for axis in reduction]
        return [0] * len(reduction)

    def _scratch(self) -> MemRef:
        elements = column_strides(self.plan, slack=self.plan.run)[-1]
        assert isinstance(elements, int)
        return self.kernel.scratch(self.plan.loops.elements[0], elements)

    def enter(self, outer: Mapping[Axis, Operand], panel: Operand, actives: Sequence[Operand | None]) -> None:
        """Go to a panel; `actives` are the live lanes of its vectors (None: all)."""
        self.outer, self.panel, self.actives = outer, panel, actives
        plan, kernel = self.plan, self.kernel
        if plan.rhs_mode == "constant":
            assert plan.packed is not None and plan.constant is not None
            first, column = 0, plan.loops.column.inner
            for loop, start in plan.constant.starts.items():
                at = (
                    d.mul(d.floor_div(start, plan.width), plan.packed.panel_stride)
                    if loop == column
                    else d.mul(start, plan.packed.strides[loop])
                )
                first = kernel.add(first, self.buffers.operand(at))
            self.base = kernel.add(kernel.mul(panel, plan.packed.panel_stride), first)
            for axis, value in self._places(outer).items():
                self.base = kernel.add(self.base, kernel.mul(value, plan.packed.strides.get(axis.inner, 0)))
        elif plan.rhs_mode == "direct":
            access = plan.loops.rhs.access
            assert access is not None
            self.base = kernel.add(self.buffers.operand(access.flat.constant), kernel.mul(panel, plan.width))
            for axis, value in self._places(outer).items():
                self.base = kernel.add(self.base, kernel.mul(value, self.buffers.operand(plan.loops.rhs.stride(axis))))
        elif plan.rhs_mode == "packed":
            self.base = 0
            self._pack()

    def _places(self, outer: Mapping[Axis, Operand]) -> Mapping[Axis, Operand]:
        """Where the panel is along its outer axes, and the block along the reduction."""
        return {**outer, **self.piece.starts}

    def reader(self) -> Columns:
        """Column vectors by column index."""
        plan, kernel = self.plan, self.kernel
        if plan.rhs_mode == "pulled":
            return lambda column, at, v: self._across(at, v, self.actives[v])
        memory = self._memory()
        packed = plan.rhs_mode != "direct"
        size = plan.run * BYTES[memory.dtype]

        def read(column: Operand, at: Sequence[Operand], v: int) -> Value:
            index = kernel.add(kernel.add(self.base, column), v * plan.run)
            if plan.prefetch.distance and v * size % LINE_BYTES == 0:
                kernel.prefetch(memory, kernel.add(index, plan.prefetch.distance), FIRST_CACHE)
            found = kernel.load(
                memory, index, plan.run, active=None if packed else self.actives[v], align=size if packed else None
            )
            if plan.loops.unsigned[1]:
                return kernel.cast(found, "i16", unsigned=True)
            return found if plan.loops.narrow else kernel.cast(found, plan.loops.dtype)

        return read

    def prefetches(self, number: Operand) -> PrefetchRequests | None:
        """How tile `number` of those that share the panel asks for its part of the next one."""
        plan, kernel = self.plan, self.kernel
        if not plan.prefetch.period:
            return None
        assert plan.packed is not None
        innermost = plan.loops.reduction[-1].extent
        assert isinstance(innermost, int)
        return prefetch_requests(
            kernel,
            self._memory(),
            kernel.add(self.base, plan.packed.panel_stride),
            number,
            plan.prefetch,
            innermost * plan.width,
        )

    def _memory(self) -> MemRef:
        plan = self.plan
        if self.buffer is not None:
            return self.buffer
        if plan.packed is not None:
            assert plan.constant is not None
            position = plan.view.tensors.index(plan.constant.argument)
            return self.kernel.binding(position, plan.loops.elements[1], plan.packed.elements)
        assert plan.loops.rhs.access is not None
        return self.buffers.argument(plan.loops.rhs.access.source)

    # packing ----------------------------------------------------------------------------------------------------------

    def _pack(self) -> None:
        plan = self.plan
        assert self.buffer is not None
        packer = (PairPacker if plan.pairs else PanelPacker)(self.kernel, self.buffer, plan.lanes, plan.tile.vectors)
        reduction = plan.loops.reduction
        extents = [self.piece.extent(axis, self.buffers.operand(axis.extent)) for axis in reduction]
        strides = self.strides(plan, self.emitter)
        if plan.lanes > 1 and reduction and self._reads(reduction[-1]) > self._reads(plan.loops.column):
            packer.turn(
                extents, strides, len(self.actives), self._along, reduction_cuts(plan, plan.loops.rhs, step=plan.run)
            )
        else:
            packer.copy(
                extents,
                strides,
                self.actives,
                self._across,
                reduction_cuts(plan, plan.loops.rhs, step=plan.run // plan.lanes),
            )

    def _reads(self, axis: Axis) -> int:
        """How many of the tensors behind the operand lie contiguous along an axis."""
        operand, loops = self.plan.loops.rhs, self.plan.loops
        return contiguous_reads(self.plan.view, operand.value, operand.map, axis.inner, loops.extents)

    def _across(self, at: Sequence[Operand], v: int, active: Operand | None) -> Value:
        """A vector of neighbouring columns at one step."""
        column = Index(self._column(v * self.plan.lanes), 1 if self.plan.lanes > 1 else 0)
        return self._pull([Index(i) for i in at], column, self.plan.lanes, active)

    def _along(self, at: Sequence[Operand], column: Operand, active: Operand | None) -> Value:
        """A vector of steps of the innermost axis at one column; beyond the last column the last is read again."""
        kernel = self.kernel
        extent = self.buffers.operand(self.plan.loops.column.extent)
        place_ = self._column(column)
        if any(a is not None for a in self.actives):
            place_ = kernel.min(place_, kernel.sub(extent, 1))
        return self._pull([*(Index(i) for i in at[:-1]), Index(at[-1], 1)], Index(place_), self.plan.run, active)

    def _column(self, offset: Operand) -> Operand:
        return self.kernel.add(self.kernel.mul(self.panel, self.plan.width), offset)

    def _pull(self, at: Sequence[Index], column: Index, lanes: int, active: Operand | None) -> Value:
        loops, operand = self.plan.loops, self.plan.loops.rhs
        point: list[AnyIndex] = [Index(0)] * loops.root.rank
        for axis, value in self.outer.items():
            place(self.buffers, point, axis, Index(value))
        for axis, index in zip(loops.reduction, at, strict=True):
            base = self.kernel.add(self.piece.start(axis), index.base)
            place(self.buffers, point, axis, Index(base, index.stride))
        place(self.buffers, point, loops.column, column)
        value = self.emitter.value_at(operand.value, self.emitter.through(operand.map, point, lanes), lanes, active)
        return self.kernel.cast(value, loops.elements[0], unsigned=loops.unsigned[1])
