"""The stages of a dispatch: which of its values are stored, where, and over which axes each is made.

A *stage* makes one stored value (or the results of one reduction); everything else is pulled where it is read. Stored
are the dispatch's results, every reduction that something reads, and elementwise values that are dear and read more
than once. One of those that is too large for scratch may have a *host*: a result made of it point by point, in whose
place it lies until then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func, linalg
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.structured import StructuredOp, is_generic, is_reduction, splat_value, tensor_operands
from fuseline.dispatch.derived_loops import live_ops
from fuseline.dispatch.fused_loops import members_of
from fuseline.dispatch.is_internal import is_internal
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.dispatch.result_boxes import ResultBox, stored_boxes
from fuseline.dispatch.view import DispatchView
from fuseline.ir.rounds import rounds
from fuseline.targets.cpu.emit.coordinates import static_upper_bound
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.nests.gathers import is_picked
from fuseline.targets.cpu.families.nests.grouped_columns import GroupedColumns
from fuseline.targets.cpu.families.nests.non_identity_reads import non_identity_reads
from fuseline.targets.cpu.families.nests.recompute_cost import RECOMPUTE_LIMIT_OPS, cost, is_elementary, is_slow
from fuseline.targets.cpu.kernel_ir.types import BYTES

SCRATCH_LIMIT_BYTES = 128 * 1024
"""What one stored value may take of a thread's scratch; a larger one is recomputed where it is read."""


@dataclass(frozen=True)
class Destination:
    """A place in the `position`-th result of the dispatch."""

    position: int
    box: ResultBox


@dataclass(eq=False)
class Stage:
    """What is made together. `op` is the reduction (None: `values` has one value, pulled element by element).

    `parallel` are the axes of the value that are longer than 1, outermost first; `reduction` those of the op's
    reduction loops.
    """

    values: tuple[SSAValue, ...]
    op: linalg.ops.GenericOp | None
    parallel: list[LoopRef]
    reduction: list[LoopRef]
    destinations: dict[SSAValue, list[Destination]] = field(default_factory=dict[SSAValue, list[Destination]])
    reads: set[SSAValue] = field(default_factory=set[SSAValue])


class Staging:
    """Chooses the stages of a dispatch."""

    def __init__(self, view: DispatchView, grouped: GroupedColumns | None = None) -> None:
        self.view, self.grouped = view, grouped
        self.axes = view.classes if grouped is None else grouped.classes
        self.ops = [op for op in view.entry.body.block.ops if not isinstance(op, func.ReturnOp)]
        self.destinations = _destinations(view)
        self.live = live_ops(self.destinations)
        self.rows = _rows(view)
        self.stored = self._stored()
        self.ahead: list[Stage] = []
        self.loose = non_identity_reads(self.ops, self.view.shapes, self.stored)
        self.stages = self._stages()
        self._find_hosts()

    # what is stored ---------------------------------------------------------------------------------------------------

    def _stored(self) -> set[SSAValue]:
        stored = set(self.destinations) | (self.grouped.kept if self.grouped is not None else set())
        for op in self.ops:
            if op not in self.live or not is_generic(op):
                continue
            needed = [r for r in op.results if r in stored or _readers(r, self.live)]
            if StructuredOp(op).reduction:
                if needed:
                    stored.update(op.results)
            else:
                stored.update(r for r in needed if self._is_kept(op, r))
        return stored

    @property
    def picked(self) -> list[SSAValue]:
        """The stored values of which readers pick several elements of a row, in the order in which they are made."""
        stored = (value for op in self.ops for value in op.results if value in self.stored)
        return [value for value in stored if self._is_picked(value)]

    def _is_picked(self, value: SSAValue) -> bool:
        """Whether readers pick elements of rows of `value`: several of one, or of rows that are made for it."""
        return is_picked(value, _readers(value, self.live), least=1 if value.owner in self.rows else 2)

    def _is_kept(self, op: Operation, value: SSAValue) -> bool:
        """Whether `value`, elements that `op` computes, is stored rather than evaluated at each read."""
        return self._is_picked(value) or self.saves_work(op, value)

    def saves_work(self, op: Operation, value: SSAValue) -> bool:
        """Whether several reads would evaluate `value`, which `op` makes and which is dear, again."""
        again = len(_readers(value, self.live)) > 1 or (is_elementary(op) and self._repeated(value))
        return (again and self._is_dear(op)) or (
            is_slow(op) and self._is_reduced(value) and self._repeated(value, True)
        )

    def _is_reduced(self, value: SSAValue) -> bool:
        """Whether `value` is made, point by point, of what a reduction makes: it has the grid's loops, as that has."""
        own, pending, seen = self._loops_of(value), [value], set[Operation]()
        while pending:
            source = pending.pop()
            op = source.owner
            if isinstance(op, Operation) and op in self.live and op not in seen:
                if is_reduction(op) and self._loops_of(source) == own:
                    return True
                seen.add(op)
                pending += tensor_operands(op)
        return False

    def _loops_of(self, value: SSAValue) -> set[LoopRef]:
        return {axis for axis in self.axes.of_value(value) if axis is not None}

    def _repeated(self, value: SSAValue, beside: bool = False) -> bool:
        """Whether something reads `value` again along loops that `value` does not have. `beside`: other elements of it
        in between, so that none stays in a register."""
        for op in _readers(value, self.live):
            if is_generic(op):
                structured = StructuredOp(op)
                moving = {i for i, size in enumerate(structured.loops(self.view.shapes)) if size != 1}
                for source, map_ in zip(structured.inputs, structured.input_maps, strict=True):
                    used = map_.used_dims()
                    if source is value and moving - used and (not beside or max(moving) in used):
                        return True
        return False

    def _fits(self, value: SSAValue) -> bool:
        """Whether what a workgroup could need of it is surely small enough: the longest dimension that is none of the
        grid's, at the least, is traversed inside."""
        inside = zip(self.axes.of_value(value), self.view.shapes.dims(value), strict=True)
        bounds = [static_upper_bound([size]) for axis, size in inside if axis not in self.axes.grid]
        if not bounds:
            return True
        return (
            all(b is not None for b in bounds)
            and max(b or 0 for b in bounds) * BYTES[dtype_of(value.type)] <= SCRATCH_LIMIT_BYTES
        )

    # values in the place of results -----------------------------------------------------------------------------------

    def _find_hosts(self) -> None:
        """Give dear values that do not fit scratch the place of a result, or have them recomputed where there is none.

        Each round stores one value less.
        """
        for _ in rounds("the places of stored values", most=len(self.stored)):
            homeless = self._placed_hosts()
            if homeless is None:
                return
            self._recompute(homeless)

    def _placed_hosts(self) -> SSAValue | None:
        """Places for what does not fit scratch; the first value that finds none."""
        self.hosts = {}
        for stage in self.stages:
            value = stage.values[0]
            if stage.op is not None or stage.destinations.get(value) or self._fits(value):
                continue
            host = self._host(value)
            if host is None:
                return value
            self.hosts[value] = host
        return None

    def _host(self, value: SSAValue) -> Destination | None:
        """The place of the one result that is made of `value` point by point, after every reduction that reads it; None
        where there is none."""
        readers = [stage for stage in self.stages if value in stage.reads]
        pointwise = [stage for stage in readers if stage.op is None]
        if len(pointwise) != 1 or self.loose.get(value) or self._reduced_on_the_way(value):
            return None
        (last,) = pointwise
        (result,) = last.values
        places = last.destinations.get(result, [])
        alike = self.axes.of_value(result) == self.axes.of_value(value) and dtype_of(result.type) == dtype_of(
            value.type
        )
        if (
            len(places) != 1
            or not alike
            or any(not set(stage.values) & last.reads for stage in readers if stage is not last)
        ):
            return None
        return places[0]

    def _reduced_on_the_way(self, value: SSAValue) -> bool:
        """Whether some reduction of `value` is made anew wherever it is read."""
        pending, seen = [value], set[Operation]()
        while pending:
            for op in _readers(pending.pop(), self.live) - seen:
                seen.add(op)
                if is_reduction(op) and op.results[0] not in self.stored:
                    return True
                pending += [result for result in op.results if result not in self.stored]
        return False

    def _is_dear(self, op: Operation) -> bool:
        """Whether what `op` makes takes more to evaluate again than to store and load."""
        return cost(op, self.live, set(self.destinations), RECOMPUTE_LIMIT_OPS) > RECOMPUTE_LIMIT_OPS

    def unstore(self, value: SSAValue) -> None:
        """Recompute `value` where it is read."""
        self._recompute(value)
        self._find_hosts()

    def make_ahead(self, values: Sequence[SSAValue]) -> None:
        """Make `values`, in this order, before the grid begins: stages of which the grid knows nothing."""
        self.stored.update(values)
        self.loose = non_identity_reads(self.ops, self.view.shapes, self.stored)
        stages = self._stages()
        self.stages = [stage for stage in stages if stage.values[0] not in values]
        self.ahead = [stage for stage in stages if stage.values[0] in values]

    def _recompute(self, value: SSAValue) -> None:
        self.stored.remove(value)
        self.loose = non_identity_reads(self.ops, self.view.shapes, self.stored)
        self.stages = self._stages()

    # stages -----------------------------------------------------------------------------------------------------------

    def _stages(self) -> list[Stage]:
        stages: list[Stage] = []
        for value in self.destinations:
            if not (isinstance(value, OpResult) and is_internal(value)):
                stages.append(self._element_stage(value))
        for op in self.ops:
            held = tuple(r for r in op.results if r in self.stored and is_internal(r))
            if op not in self.live or not held:
                continue
            if is_generic(op) and StructuredOp(op).reduction:
                stages.append(self._reduction_stage(op))
            else:
                stages += [self._element_stage(value) for value in held]
        return stages

    def _element_stage(self, value: SSAValue) -> Stage:
        parallel = [axis for axis in self.axes.of_value(value) if axis is not None]
        stage = Stage((value,), None, parallel, [], {value: self.destinations.get(value, [])})
        stage.reads = set(self.stored_below(value))
        return stage

    def _reduction_stage(self, op: linalg.ops.GenericOp) -> Stage:
        structured, loops = StructuredOp(op), self.axes.of_op(op)
        reduction = [axis for i in structured.reduction if (axis := loops[i]) is not None]
        parallel = [axis for axis in self.axes.of_value(op.results[0]) if axis is not None]
        stage = Stage(tuple(op.results), op, parallel, reduction, {r: self.destinations.get(r, []) for r in op.results})
        stage.reads = {stored for value in tensor_operands(op) for stored in self._stored_from(value)}
        return stage

    def stored_below(self, value: SSAValue) -> Iterator[SSAValue]:
        """The stored values that a value is made of."""
        if isinstance(value, OpResult) and is_internal(value):
            for source in tensor_operands(value.op):
                yield from self._stored_from(source)

    def _stored_from(self, value: SSAValue) -> Iterator[SSAValue]:
        seen: set[SSAValue] = set()
        pending = [value]
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            if current in self.stored:
                yield current
            elif isinstance(current, OpResult) and is_internal(current):
                pending += tensor_operands(current.op)

    def inlined(self, stage: Stage) -> set[Operation]:
        """The ops evaluated inside `stage`."""
        found: set[Operation] = set()
        pending: list[SSAValue] = [v for value in stage.values for v in ([value] if is_internal(value) else [])]
        first = True
        while pending:
            value = pending.pop()
            if not (isinstance(value, OpResult) and is_internal(value)) or value.op in found:
                continue
            if not first and value in self.stored and value not in stage.values:
                continue
            found.add(value.op)
            pending += tensor_operands(value.op)
        return found


def _rows(view: DispatchView) -> set[Operation]:
    """The members with loops of the grid and one inside: where nothing is reduced, they make a row at each point."""
    placed = zip(members_of(view.entry.body.block), view.loops.members, strict=True)
    return {op for op, one in placed if any(at is not None for at in one.grid_loops) and None in one.grid_loops}


def _readers(value: SSAValue, live: set[Operation]) -> set[Operation]:
    found: set[Operation] = set()
    for use in value.uses:
        owner: Operation | None = use.operation
        while owner is not None and owner not in live:
            owner = owner.parent_op()
        if owner is not None:
            found.add(owner)
    return found


# results --------------------------------------------------------------------------------------------------------------


def _destinations(view: DispatchView) -> dict[SSAValue, list[Destination]]:
    found: dict[SSAValue, list[Destination]] = {}
    for position, box in stored_boxes(view.entry.body.block, view.shapes):
        found.setdefault(box.value, []).append(Destination(position, box))
    return found


def element_types(staging: Staging, stage: Stage) -> set[str]:
    """The dtypes of the tensors that a stage reads and makes."""
    ops = staging.inlined(stage)
    values = [v for op in ops for v in (*tensor_operands(op), *op.results)] + list(stage.values)
    return {dtype_of(v.type) for v in values if isinstance(v.type, TensorType) and splat_value(v) is None}
