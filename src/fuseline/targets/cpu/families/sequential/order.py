"""Ranks, and the positions in their order: by sorting each row, once.

    rank[.., i, ..] = sum over j of (x[.., j, ..] comes before x[.., i, ..] ? 1 : 0)
    position[.., r, ..] = sum over i of (rank[.., i, ..] == r ? i : 0)

A workgroup takes one row. Keys are evaluated as the walk comes by, through what computes them in the dispatch; where
positions are asked for, ranks are never stored, and what follows from a position point by point (the elements there) is
written with it. How rows are put in order is in `packed_order.py` and `keyed_order.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.idioms import idiom_of
from fuseline.analysis.ranks import Positions, Rank, positions_of
from fuseline.analysis.structured import StructuredOp, is_generic, splat_value
from fuseline.analysis.walks import Scatter
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim, upper_bound
from fuseline.targets.cpu.combinators.lanes import LaneLoop, is_masked
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.contraction.results import ResultPath, paths_from
from fuseline.targets.cpu.families.family import NEVER_RUNS, Family, Plan, Refusal
from fuseline.targets.cpu.families.root.kernel import RootKernel
from fuseline.targets.cpu.families.sequential.kept_order import KeptOrder, Rooms, rooms_of
from fuseline.targets.cpu.families.sequential.keyed_order import KeyedOrder
from fuseline.targets.cpu.families.sequential.packed_order import PackedOrder
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import BITS, Operand, Value

MOST_AT_ONCE = 1 << 17
"""Elements that are put in order in one walk at the most."""

ASSUMED_AT_ONCE = 1 << 14
"""The same of rows of which nobody knows how long they are."""

PACKED_BITS = 32
"""Bits of a key beside which a position has room."""

KEY_TYPES = ("i8", "i16", "i32", "i64")


@dataclass(frozen=True, kw_only=True)
class OrderPlan(Plan):
    """The order of the rows of `rank`, told as `positions` (None: as ranks). The loops `outer` of what is told form the
    grid; `extents` are those of its loops, `count` and `total` how many elements a row has and how many places are
    told; `lanes` places at a time."""

    rank: Rank
    positions: Positions | None
    outer: tuple[int, ...]
    extents: tuple[Dim, ...]
    count: Dim
    total: Dim
    rooms: Rooms
    packed: bool
    lanes: int
    paths: tuple[ResultPath, ...]

    @property
    def told(self) -> StructuredOp:
        """The op whose result is told."""
        return self.rank.root if self.positions is None else self.positions.root

    @property
    def along(self) -> int:
        """Its loop along the row."""
        return self.rank.ranked if self.positions is None else self.positions.ordered


class _OrderKernel(RootKernel):
    def __init__(self, plan: OrderPlan, kernel: KernelBuilder) -> None:
        super().__init__(plan, kernel, plan.told, plan.paths, plan.lanes)
        self.plan, self.rank = plan, plan.rank
        self.row: list[AnyIndex] = []

    def prepare(self) -> None:
        """Room for what is in order."""
        plan, kernel, root = self.plan, self.kernel, self.rank.root
        dtypes = [dtype_of(root.inputs[key].type) for key in self.rank.keys]
        self.order: KeptOrder = (
            PackedOrder(kernel, plan.rooms, self._key)
            if plan.packed
            else KeyedOrder(kernel, plan.rooms, self._key, dtypes)
        )

    def workgroup(self, number: Operand) -> tuple[Operand, ...]:
        """One row."""
        plan, kernel = self.plan, self.kernel
        told = self.point_of(number, plan.outer, plan.extents)
        self.row = self._row(told)
        count, total = (self.buffers.operand(size) for size in (plan.count, plan.total))
        if plan.positions is None and self.rank.limit is not None:
            limit = self.rank.limit
            kernel.loop(0, count, 1, lambda i: self._finish(told, Index(i), None, kernel.as_value(limit)))

        def found(place: Operand, lanes: int, active: Operand | None, positions: Value) -> None:
            if plan.positions is None:
                at = kernel.max(kernel.min(positions, kernel.sub(count, 1)), 0)
                self._finish(told, Index(at), active, kernel.as_value(place))
            else:
                last = kernel.splat(kernel.as_value(kernel.sub(count, 1)), lanes)
                inside = kernel.max(kernel.min(positions, last), kernel.const(0, "i64", lanes))
                self._finish(told, Index(place, 1 if lanes > 1 else 0), active, inside)

        again = upper_bound(plan.total) is None or (upper_bound(plan.total) or 0) > plan.rooms.want
        self.order.run(count, kernel.min(total, count), again=again, found=found, lanes=plan.lanes)
        if plan.positions is not None and plan.total != plan.count and not _is_less(plan.total, plan.count):
            self._fill(told, count, total)
        return ()

    def _fill(self, told: list[AnyIndex], count: Operand, total: Operand) -> None:
        """Places that a row has no element for."""
        kernel = self.kernel

        def place(
            starts: list[Operand], lanes: int, active: Operand | None, state: tuple[Value, ...]
        ) -> Sequence[Value]:
            self._finish(told, Index(starts[0], 1 if lanes > 1 else 0), active, kernel.const(0, "i64", lanes))
            return state

        LaneLoop(kernel, self.plan.lanes, masked=is_masked(kernel, "i64")).run(kernel.min(count, total), total, place)

    def _finish(self, told: list[AnyIndex], along: AnyIndex, active: Operand | None, value: Value) -> None:
        here = [along if loop == self.plan.along else at for loop, at in enumerate(told)]
        self.results.finish(here, active, value)

    def _row(self, told: list[AnyIndex]) -> list[AnyIndex]:
        """The loops of the rank where those of what is told are, the one along the row at 0."""
        plan, root = self.plan, self.rank.root
        if plan.positions is None:
            return [*told]
        row: list[AnyIndex] = [Index(0)] * root.rank
        view = plan.positions.root
        place = view.input_maps[view.inputs.index(root.op.results[0])]
        for at, loop in zip(place.results, root.output_maps[0].results, strict=True):
            assert isinstance(at, AffineDimExpr) and isinstance(loop, AffineDimExpr)
            if at.position != view.reduction[0]:
                row[loop.position] = told[at.position]
        return row

    def _key(self, number: int, index: AnyIndex, lanes: int, active: Operand | None) -> Value:
        root, key = self.rank.root, self.rank.keys[number]
        loops = [index if loop == self.rank.ranked else at for loop, at in enumerate(self.row)]
        return self.emitter.value_at(
            root.inputs[key], self.emitter.through(root.maps[key], loops, lanes), lanes, active
        )


def _is_less(a: Dim, b: Dim) -> bool:
    """Whether both are known, and the first is no more."""
    return isinstance(a, int) and isinstance(b, int) and a <= b


class OrderFamily(Family):
    """Takes ranks, alone or with the positions in their order, of rows of any length."""

    name = "order"
    kernel_type = _OrderKernel

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan where rows are ranked."""
        found = _order_in(view)
        if found is None:
            return Refusal("not-a-rank", "nothing counts what comes before, or something else reduces as well")
        rank, positions = found
        root = rank.root
        if splat_value(root.outputs[0]) != 0 or dtype_of(root.op.results[0].type) != "i64":
            return Refusal("not-a-rank", "the count does not begin at 0")
        dtypes = [dtype_of(root.inputs[key].type) for key in rank.keys]
        if not set(dtypes) <= set(KEY_TYPES):
            return Refusal("element-type", f"keys are {', '.join(dtypes)}")
        told = root if positions is None else positions.root
        paths = paths_from(view, told)
        if isinstance(paths, Refusal):
            return paths
        extents, ranked = told.loops(view.shapes), root.loops(view.shapes)
        if 0 in (*extents, *ranked):
            return NEVER_RUNS
        return self._plan(view, machine, (rank, positions), (extents, ranked[rank.ranked]), paths)

    def _plan(
        self,
        view: DispatchView,
        machine: Machine,
        order: tuple[Rank, Positions | None],
        sizes: tuple[tuple[Dim, ...], Dim],
        paths: Sequence[ResultPath],
    ) -> Plan | Refusal:
        (rank, positions), (extents, count) = order, sizes
        told, along = (rank.root, rank.ranked) if positions is None else (positions.root, positions.ordered)
        most, total = upper_bound(count), extents[along]
        if positions is None and rank.limit is not None:
            total = d.minimum(total, rank.limit)
        bits = [BITS[dtype_of(rank.root.inputs[key].type)] for key in rank.keys]
        packed = bits[1:] == [] and bits[0] <= PACKED_BITS and (most is None or most < 1 << PACKED_BITS)
        largest = ASSUMED_AT_ONCE if most is None else MOST_AT_ONCE
        rooms = rooms_of(most, upper_bound(total), largest)
        outer = tuple(loop for loop in told.parallel if loop != along and extents[loop] != 1)
        last = [path.coordinates[-1:] == (along,) for path in paths]
        plan = OrderPlan(
            view=view, workgroups=d.product(extents[loop] for loop in outer), rank=rank, positions=positions,
            outer=outer, extents=extents, count=count, total=total, rooms=rooms, packed=packed,
            lanes=machine.lanes("i64") if positions is not None and all(last) else 1, paths=tuple(paths),
        )  # fmt: skip
        return replace(plan, notes={"lanes": plan.lanes, "kept": rooms.room})


def _order_in(view: DispatchView) -> tuple[Rank, Positions | None] | None:
    """The one rank of a dispatch, and the positions that are made of it; None where something else reduces."""
    reducing = [one for op in view.members if is_generic(op) and (one := StructuredOp(op)).reduction]
    forms = [idiom_of(one, one.loops(view.shapes)) for one in reducing]
    ranks = [form for form in forms if isinstance(form, Rank)]
    scatters = [form for form in forms if isinstance(form, Scatter)]
    if len(ranks) != 1 or len(forms) != 1 + len(scatters) or len(scatters) > 1:
        return None
    if not scatters:
        return ranks[0], None
    positions = positions_of(scatters[0], ranks[0])
    if positions is None or not positions.all_ranked(positions.root.loops(view.shapes)):
        return None
    return ranks[0], positions


EXPORT = OrderFamily
