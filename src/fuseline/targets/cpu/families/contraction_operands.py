"""How a kernel reads the two operands of a multiply-add root: row elements and column vectors, in each of their modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fuseline.analysis.cut_points import pieces
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.access import AnyIndex, Index
from fuseline.targets.cpu.evaluator import Evaluator
from fuseline.targets.cpu.families.contraction_access import contiguous_reads, loop_pieces
from fuseline.targets.cpu.families.contraction_plan import ContractionPlan
from fuseline.targets.cpu.families.contraction_problem import Axis, RowSegment
from fuseline.targets.cpu.families.contraction_problem import Operand as RootOperand
from fuseline.targets.cpu.families.contraction_tile import Edges, Point, TileRows, place
from fuseline.targets.cpu.kernel_ir.types import Address, MemRef, Operand, Value
from fuseline.targets.cpu.microkernel import Columns, EdgeCheck, ReductionAxis, RoundedTerm, Rows, rounded
from fuseline.targets.cpu.packing import PanelPacker, over_axes
from fuseline.targets.cpu.tiles import LINE_BYTES

PEELED_STEPS = 24
"""Edge checks before fewer steps than this are kept out of the tiles inside the image. A check takes about three instructions per row."""

ROW_SLACK = 16
"""Elements between packed rows beyond their length: rows a multiple of 4 KiB apart would share a cache set."""


def column_strides(plan: ContractionPlan, *, slack: int) -> list[int | Dim]:
    """Elements between two steps of each reduction axis in a panel, whose innermost extent is rounded up to `slack` steps."""
    strides: list[Dim] = []
    step: Dim = plan.width
    for i, axis in enumerate(reversed(plan.problem.reduction)):
        strides.append(step)
        extent = axis.extent if i else d.mul(d.floor_div(d.add(axis.extent, slack - 1), slack), slack)
        step = d.mul(step, extent)
    return [*reversed(strides), step]


def reduction_cuts(plan: ContractionPlan, operand: RootOperand, *, step: int = 1) -> list[tuple[int, ...]]:
    """Where to cut the axes of the reduction for an operand that is evaluated along them; the innermost at multiples of `step`."""
    problem, last = plan.problem, len(plan.problem.reduction) - 1
    return [
        loop_pieces(plan.view, operand.value, operand.map, axis.inner, problem.extents, step=step if i == last else 1)
        for i, axis in enumerate(problem.reduction)
    ]


class RowReader:
    """The left operand. `enter` a workgroup, then ask for the rows of its tiles."""

    def __init__(self, plan: ContractionPlan, evaluator: Evaluator) -> None:
        self.plan, self.evaluator = plan, evaluator
        self.kernel, self.frame = evaluator.kernel, evaluator.frame
        self.edges = [Edges(plan, self.frame, segment) for segment in plan.problem.segments]
        padded = [segment.access for segment in plan.problem.segments if segment.access.bounds]
        self.pad = padded[0].pad if padded else 0
        pages = plan.lhs_mode == "linear" and bool(padded)
        self.page = self.kernel.scratch(plan.problem.dtype, -(-plan.page_elements // plan.lanes) * plan.lanes) if pages else None
        self.buffer = self._scratch() if plan.lhs_mode == "packed" else None
        self.cuts: Sequence[tuple[int, ...]] = reduction_cuts(plan, plan.problem.lhs) if self.buffer is not None else ()
        self.origin: tuple[Operand, Operand] = (0, 0)

    @property
    def row_length(self) -> int:
        """Elements between two packed rows."""
        steps = self.plan.problem.steps
        assert isinstance(steps, int)
        return steps + ROW_SLACK

    @property
    def rows_per_line(self) -> int:
        """Rows of one line in the packed block."""
        return self.plan.blocks.tiles * self.plan.tile.rows

    @property
    def peels(self) -> bool:
        """Whether tiles that meet padding get code of their own: where few steps follow an edge check, the check would cost as much as they do."""
        return self.page is not None and self.plan.page_steps < PEELED_STEPS

    def meets(self, start: int, height: int) -> tuple[bool, bool]:
        """Whether a tile that starts at row `start` can meet padding along the tiled axis: at the low side, at the high side."""
        found = [edges.meets(start, height) for edges in self.edges]
        return any(low for low, _ in found), any(high for _, high in found)

    def _scratch(self) -> MemRef:
        rows = self.plan.blocks.lines * self.rows_per_line
        return self.kernel.scratch(self.plan.problem.dtype, rows * self.row_length)

    def fill_page(self) -> None:
        """Write the pad value to the page."""
        page, plan = self.page, self.plan
        if page is None:
            return
        assert isinstance(page.extent, int)
        value = self.kernel.const(self.pad, plan.problem.dtype, plan.lanes)

        def body(i: Operand) -> tuple[Operand, ...]:
            self.kernel.store(page, i, value)
            return ()

        self.kernel.loop(0, page.extent, plan.lanes, body)

    # workgroup -----------------------------------------------------------------------------------------------------------------------

    def enter(self, outer: Mapping[Axis, Operand], lines: tuple[Operand, Operand], tiles: tuple[Operand, Operand]) -> None:
        """Pack the workgroup's rows where the mode asks for it."""
        if self.buffer is None:
            return
        kernel = self.kernel
        rows = (self._first_row(tiles[0]), self._first_row(tiles[1]))
        self.origin = (lines[0], rows[0])

        def line(i: Operand) -> tuple[Operand, ...]:
            def row(j: Operand) -> tuple[Operand, ...]:
                self._pack_row(Point(outer, i, j, 1, None, None))
                return ()

            kernel.loop(rows[0], rows[1], 1, row)
            return ()

        kernel.loop(*lines, 1, line)

    def _first_row(self, tile: Operand) -> Operand:
        """The first row of tile `tile`; of the tile past the last, the extent."""
        kernel, split = self.kernel, self.plan.split
        if split is None:
            assert self.plan.tiled is not None
            return kernel.min(kernel.mul(tile, self.plan.tile.rows), self.frame.operand(self.plan.tiled.extent))
        return kernel.add(kernel.mul(tile, split.height if not split.short else split.height - 1), kernel.min(tile, split.tall) if split.short else 0)

    def _pack_row(self, point: Point) -> None:
        kernel, plan, buffer = self.kernel, self.plan, self.buffer
        assert buffer is not None
        base = self._packed_row(point, point.start)
        reduction = plan.problem.reduction
        extents = [self.frame.operand(axis.extent) for axis in reduction]
        strides = [self.frame.operand(s) for s in self._row_strides()]
        if not reduction:
            kernel.store(buffer, base, self._pull(point, point.start, {}, 1, None))
            return

        def run(offset: Operand, at: tuple[Operand, ...]) -> None:
            self._pack_run(point, kernel.add(base, offset), at, extents[-1])

        over_axes(kernel, extents[:-1], strides[:-1], run, self.cuts[:-1])

    def _pack_run(self, point: Point, base: Operand, at: tuple[Operand, ...], extent: Operand) -> None:
        """One run of the innermost reduction axis, a vector at a time, between the borders of what is read."""
        kernel, plan, lanes = self.kernel, self.plan, self.plan.lanes
        reduction, buffer = plan.problem.reduction, self.buffer
        assert buffer is not None

        def piece(k: Operand, count: int, active: Operand | None) -> None:
            indices = {axis: Index(i) for axis, i in zip(reduction[:-1], at, strict=True)}
            indices[reduction[-1]] = Index(k, 1 if count > 1 else 0)
            kernel.store(buffer, kernel.add(base, k), self._pull(point, point.start, indices, count, active), active=active)

        def body(k: Operand) -> tuple[Operand, ...]:
            piece(k, lanes, None)
            return ()

        for begin, end in pieces(extent, self.cuts[-1]):
            whole = kernel.add(begin, kernel.mul(kernel.div(kernel.sub(end, begin), lanes), lanes))
            kernel.loop(begin, whole, lanes, body)
            rest = kernel.sub(end, whole)
            if isinstance(rest, int):
                if rest:
                    piece(whole, lanes, rest)
            else:
                kernel.when(kernel.compare("gt", rest, 0), lambda at=whole, rest=rest: piece(at, lanes, rest))

    def _pull(self, point: Point, position: Operand, reduction: Mapping[Axis, Index], lanes: int, active: Operand | None) -> Value:
        """Elements of the operand at a row, along the reduction."""
        operand = self.plan.problem.lhs
        loops = TileRows.loops(self.evaluator, self.plan, point, position)
        for axis, index in reduction.items():
            place(self.frame, loops, axis, index)
        return self.evaluator.value_at(operand.value, self.evaluator.through(operand.map, loops, lanes), lanes, active)

    def _row_strides(self) -> list[Dim]:
        strides: list[Dim] = []
        step: Dim = 1
        for axis in reversed(self.plan.problem.reduction):
            strides.append(step)
            step = d.mul(step, axis.extent)
        return strides[::-1]

    def _packed_row(self, point: Point, position: Operand) -> Operand:
        kernel = self.kernel
        line = kernel.sub(point.line, self.origin[0])
        row = kernel.add(kernel.mul(line, self.rows_per_line), kernel.sub(position, self.origin[1]))
        return kernel.mul(row, self.row_length)

    # tiles ---------------------------------------------------------------------------------------------------------------------------

    def at(self, point: Point) -> list[TileRows]:
        """The rows of a tile, a part of the reduction each."""
        if self.plan.lhs_mode == "linear":
            return [self._linear(edges, point) for edges in self.edges]
        column = self._column_strides()
        axes = [
            ReductionAxis(self.frame.operand(axis.extent), self.frame.operand(stride), column[i])
            for i, (axis, stride) in enumerate(zip(self.plan.problem.reduction, self._row_strides(), strict=True))
        ]
        if self.buffer is None:
            return [TileRows(None, axes, pulled=self._supplier(point))]
        addresses = [self.kernel.address(self.buffer, self._packed_row(point, point.position(self.kernel, r))) for r in range(point.height)]
        return [TileRows(addresses, axes)]

    def _supplier(self, point: Point) -> Rows:
        def pulled(at: Sequence[Operand], row: int) -> Value:
            indices = {axis: Index(i) for axis, i in zip(self.plan.problem.reduction, at, strict=True)}
            return self._pull(point, point.position(self.kernel, row), indices, 1, None)

        return pulled

    def _linear(self, edges: Edges, point: Point) -> TileRows:
        """The rows of a tile as far as they lie in one binding."""
        segment = edges.segment
        addresses = [self._address(segment, point, row) for row in range(point.height)]
        checks: dict[int | None, list[EdgeCheck]] = {}
        for bound in segment.access.bounds:
            check = edges.of(bound, point)
            if check is not None:
                checks.setdefault(edges.loop(bound.coordinate), []).append(check)
        terms: dict[int | None, list[RoundedTerm]] = {}
        for quotient in segment.access.quotients:
            terms.setdefault(edges.loop(quotient.numerator), []).append(edges.rounded(quotient, point))
        for term in terms.get(None, ()):
            addresses = [rounded(self.kernel, address, term, row, 0) for row, address in enumerate(addresses)]
        return TileRows(addresses, self._axes(segment, checks, terms), checks.get(None, []))

    def _address(self, segment: RowSegment, point: Point, row: int) -> Address:
        """Where a row starts, rounded terms aside."""
        kernel, plan = self.kernel, self.plan
        places = dict(point.outer)
        if plan.lines is not None:
            places[plan.lines] = point.line
        if plan.tiled is not None:
            places[plan.tiled] = point.position(kernel, row)
        total = self.frame.operand(segment.access.flat.constant)
        for axis, value in places.items():
            total = kernel.add(total, kernel.mul(value, self.frame.operand(segment.operand.stride(axis))))
        return kernel.address(self.frame.argument(segment.access.source), total)

    def _axes(
        self, segment: RowSegment, checks: Mapping[int | None, list[EdgeCheck]], terms: Mapping[int | None, list[RoundedTerm]]
    ) -> list[ReductionAxis]:
        column, operand = self._column_strides(), self.frame.operand
        return [
            ReductionAxis(
                operand(axis.extent), operand(segment.operand.stride(axis)), column[i], tuple(checks.get(axis.inner, ())),
                tuple(terms.get(axis.inner, ())), operand(segment.first(axis)),
            )
            for i, axis in enumerate(segment.reduction)
        ]  # fmt: skip

    def _column_strides(self) -> list[Operand]:
        return ColumnReader.strides(self.plan, self.evaluator)


class ColumnReader:
    """The right operand. `enter` a panel, then read its vectors by the column index that the reduction axes add up to."""

    def __init__(self, plan: ContractionPlan, evaluator: Evaluator) -> None:
        self.plan, self.evaluator = plan, evaluator
        self.kernel, self.frame = evaluator.kernel, evaluator.frame
        self.buffer = self._scratch() if plan.rhs_mode == "packed" else None
        self.base: Operand = 0
        self.outer: Mapping[Axis, Operand] = {}
        self.panel: Operand = 0
        self.actives: Sequence[Operand | None] = ()

    @staticmethod
    def strides(plan: ContractionPlan, evaluator: Evaluator) -> list[Operand]:
        """What a step of each reduction axis adds to the column index."""
        frame, reduction = evaluator.frame, plan.problem.reduction
        if plan.rhs_mode == "constant":
            assert plan.packed is not None
            return [plan.packed.strides[axis.inner] for axis in reduction]
        if plan.rhs_mode == "packed":
            return [frame.operand(s) for s in column_strides(plan, slack=plan.lanes)[:-1]]
        if plan.rhs_mode == "direct":
            return [frame.operand(plan.problem.rhs.stride(axis)) for axis in reduction]
        return [0] * len(reduction)

    def _scratch(self) -> MemRef:
        elements = column_strides(self.plan, slack=self.plan.lanes)[-1]
        assert isinstance(elements, int)
        return self.kernel.scratch(self.plan.problem.dtype, elements)

    def enter(self, outer: Mapping[Axis, Operand], panel: Operand, actives: Sequence[Operand | None]) -> None:
        """Go to a panel; `actives` are the live lanes of its vectors (None: all)."""
        self.outer, self.panel, self.actives = outer, panel, actives
        plan, kernel = self.plan, self.kernel
        if plan.rhs_mode == "constant":
            assert plan.packed is not None and plan.constant is not None
            first, column = 0, plan.problem.column.inner
            for loop, start in plan.constant.starts.items():
                at = d.mul(d.floor_div(start, plan.width), plan.packed.panel_stride) if loop == column else d.mul(start, plan.packed.strides[loop])
                first = kernel.add(first, self.frame.operand(at))
            self.base = kernel.add(kernel.mul(panel, plan.packed.panel_stride), first)
            for axis, value in outer.items():
                self.base = kernel.add(self.base, kernel.mul(value, plan.packed.strides.get(axis.inner, 0)))
        elif plan.rhs_mode == "direct":
            access = plan.problem.rhs.access
            assert access is not None
            self.base = kernel.add(self.frame.operand(access.flat.constant), kernel.mul(panel, plan.width))
            for axis, value in outer.items():
                self.base = kernel.add(self.base, kernel.mul(value, self.frame.operand(plan.problem.rhs.stride(axis))))
        elif plan.rhs_mode == "packed":
            self.base = 0
            self._pack()

    def reader(self) -> Columns:
        """Column vectors by column index."""
        plan, kernel = self.plan, self.kernel
        if plan.rhs_mode == "pulled":
            return lambda column, at, v: self._across(at, v, self.actives[v])
        memory = self._memory()
        packed = plan.rhs_mode != "direct"
        align = kernel.machine.vector_bytes if packed else None

        def read(column: Operand, at: Sequence[Operand], v: int) -> Value:
            index = kernel.add(kernel.add(self.base, column), v * plan.lanes)
            if plan.prefetch and v * kernel.machine.vector_bytes % LINE_BYTES == 0:
                kernel.prefetch(memory, kernel.add(index, plan.prefetch), plan.prefetch_cache)
            return kernel.load(memory, index, plan.lanes, active=None if packed else self.actives[v], align=align)

        return read

    def _memory(self) -> MemRef:
        plan = self.plan
        if self.buffer is not None:
            return self.buffer
        if plan.packed is not None:
            assert plan.constant is not None
            position = plan.view.tensors.index(plan.constant.argument)
            return self.kernel.binding(position, plan.problem.dtype, plan.packed.elements)
        assert plan.problem.rhs.access is not None
        return self.frame.argument(plan.problem.rhs.access.source)

    # packing -------------------------------------------------------------------------------------------------------------------------

    def _pack(self) -> None:
        plan = self.plan
        assert self.buffer is not None
        packer = PanelPacker(self.kernel, self.buffer, plan.lanes, plan.tile.vectors)
        reduction = plan.problem.reduction
        extents = [self.frame.operand(axis.extent) for axis in reduction]
        strides = self.strides(plan, self.evaluator)
        if plan.lanes > 1 and reduction and self._reads(reduction[-1]) > self._reads(plan.problem.column):
            packer.turn(extents, strides, len(self.actives), self._along, reduction_cuts(plan, plan.problem.rhs, step=plan.lanes))
        else:
            packer.copy(extents, strides, self.actives, self._across, reduction_cuts(plan, plan.problem.rhs))

    def _reads(self, axis: Axis) -> int:
        """How many of the tensors behind the operand lie contiguous along an axis."""
        operand, problem = self.plan.problem.rhs, self.plan.problem
        return contiguous_reads(self.plan.view, operand.value, operand.map, axis.inner, problem.extents)

    def _across(self, at: Sequence[Operand], v: int, active: Operand | None) -> Value:
        """A vector of neighbouring columns at one step."""
        column = Index(self._column(v * self.plan.lanes), 1 if self.plan.lanes > 1 else 0)
        return self._pull([Index(i) for i in at], column, active)

    def _along(self, at: Sequence[Operand], column: int, active: Operand | None) -> Value:
        """A vector of steps of the innermost axis at one column; beyond the last column the last is read again."""
        kernel = self.kernel
        extent = self.frame.operand(self.plan.problem.column.extent)
        place_ = self._column(column)
        if any(a is not None for a in self.actives):
            place_ = kernel.min(place_, kernel.sub(extent, 1))
        return self._pull([*(Index(i) for i in at[:-1]), Index(at[-1], 1)], Index(place_), active)

    def _column(self, offset: int) -> Operand:
        return self.kernel.add(self.kernel.mul(self.panel, self.plan.width), offset)

    def _pull(self, at: Sequence[Index], column: Index, active: Operand | None) -> Value:
        plan, operand = self.plan, self.plan.problem.rhs
        loops: list[AnyIndex] = [Index(0)] * plan.problem.root.rank
        for axis, value in self.outer.items():
            place(self.frame, loops, axis, Index(value))
        for axis, index in zip(plan.problem.reduction, at, strict=True):
            place(self.frame, loops, axis, index)
        place(self.frame, loops, plan.problem.column, column)
        return self.evaluator.value_at(operand.value, self.evaluator.through(operand.map, loops, plan.lanes), plan.lanes, active)
