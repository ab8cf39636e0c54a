"""Reductions over columns in groups, rewritten so that lanes run along whole rows: across the groups and the columns of
each.

    m(g) = sum over s, k of x(s, g, k)        columns k of a group are few: vectors along them end before they are full
    y(s, g, k) = x(s, g, k) - m(g)

            becomes, for lanes along (g, k),

    p(g, k) = sum over s of x(s, g, k)        m(g) = sum over k of p(g, k)        b(g, k) = m(g)
    y(s, g, k) = x(s, g, k) - b(g, k)

The values per column, p and b, are as many as a row has elements; what is made of m alone is little beside. Sums that
are written in two steps already (the moments of channels, then of groups) stay as they are. A result may lie with its
columns first: `turned_stores.py` writes squares then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import linalg
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from fuseline.analysis.column_blocks import is_group
from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.structured import StructuredOp, captured_tensors, is_generic, splat_value
from fuseline.dispatch.body_classes import BodyClasses
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, members_of
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import PARALLEL, REDUCTION, Emitter, dims_map, element_of, identity_map, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_empty, create_generic
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.combining import combiners
from fuseline.targets.cpu.isa.description import Machine

Order = list[LoopRef | None]

HALVES = ("f16", "bf16")
"""Sums of these are carried in f32, which values per column are not stored as."""


@dataclass(frozen=True)
class GroupedColumns:
    """The rewritten dispatch. `classes`: those of its loops, where all loops along columns are one; `group`, `column`:
    the loops that lanes run along together; `kept`: values that are stored although they are cheap."""

    view: DispatchView
    classes: BodyClasses
    group: LoopRef
    column: LoopRef
    kept: frozenset[SSAValue]


def grouped_columns(view: DispatchView, machine: Machine) -> GroupedColumns | None:
    """The dispatch with its reductions over groups of columns rewritten; None where it has none, or where lanes along
    rows would not lie in memory. The dispatch itself stays as it is."""
    rows = next(_rows_of(view, machine), None)
    return _Rewriting(view, rows).run() if rows is not None and rows.lie else None


def _rows_of(view: DispatchView, machine: Machine) -> Iterator[_Rows]:
    """For a loop of groups, which a reduction keeps while it reduces few columns behind and others."""
    for op in view.members:
        if not is_generic(op) or not StructuredOp(op).reduction or not StructuredOp(op).inputs:
            continue
        structured, classes = StructuredOp(op), view.classes.of_op(op)
        order = _order(view, structured.inputs[0], structured.input_maps[0], classes)
        reduced = {classes[loop] for loop in structured.reduction}
        group, column = order[-2:] if len(order) > 1 else (None, None)
        if group is None or column is None or None in order or column not in reduced or group in reduced:
            continue
        width = view.classes.extents[column]
        if not isinstance(width, int) or not is_group(width, machine.f32_lanes):
            continue
        if reduced - {column, None} or any(_keeps(view, other, {group, column}) for other in view.members):
            yield _Rows(view, group, width)


def _keeps(view: DispatchView, op: Operation, columns: set[LoopRef | None]) -> bool:
    """Whether `op` reduces rows to values per column."""
    if not is_generic(op) or not StructuredOp(op).reduction:
        return False
    reduction, classes = StructuredOp(op).reduction, view.classes.of_op(op)
    return columns.issubset(class_ for loop, class_ in enumerate(classes) if loop not in reduction)


def _order(view: DispatchView, value: SSAValue, map_: AffineMap, classes: Sequence[LoopRef | None]) -> Order:
    """The loops that step along the dimensions of an operand longer than 1; None for any other way to step."""
    sizes = view.shapes.dims(value)
    steps = [expr for expr, size in zip(map_.results, sizes, strict=True) if size != 1]
    return [classes[expr.position] if isinstance(expr, AffineDimExpr) else None for expr in steps]


class _Rows:
    """The loops along the columns of a group, `width` each, and whether everything that steps along them lies in whole
    rows."""

    def __init__(self, view: DispatchView, group: LoopRef, width: int) -> None:
        self.view, self.group, self.width = view, group, width
        self.generics = [op for op in view.members if is_generic(op)]
        self.columns = {order[-1] for op in self.generics for order in self.orders(op) if order[-2:-1] == [group]}
        self.outer = self._shared()
        self.lie = self._alike() and all(map(self._lies, view.members))

    def orders(self, op: linalg.ops.GenericOp) -> list[Order]:
        """The loops that step along each operand of `op`."""
        structured, classes = StructuredOp(op), self.view.classes.of_op(op)
        operands = zip(structured.operands, structured.maps, strict=True)
        return [_order(self.view, value, map_, classes) for value, map_ in operands]

    def column_of(self, op: linalg.ops.GenericOp) -> int | None:
        """The loop of `op` along columns."""
        classes = self.view.classes.of_op(op)
        return next((i for i, class_ in enumerate(classes) if class_ in self.columns), None)

    def _shared(self) -> set[LoopRef | None]:
        """The loops that all reductions keep."""
        kept = [
            {class_ for i, class_ in enumerate(self.view.classes.of_op(op)) if i not in StructuredOp(op).reduction}
            for op in self.generics
            if StructuredOp(op).reduction
        ]
        return set.intersection(*kept)

    def _alike(self) -> bool:
        return all(column is not None and self.view.classes.extents[column] == self.width for column in self.columns)

    def _lies(self, op: Operation) -> bool:
        if not is_generic(op) or captured_tensors(op):
            return type(op) in RESHAPES
        classes = self.view.classes.of_op(op)
        if len(self.columns.intersection(classes)) > 1 or (StructuredOp(op).reduction and not self._reduces(op)):
            return False
        structured = StructuredOp(op)
        operands = enumerate(zip(structured.operands, self.orders(op), strict=True))
        return all(
            splat_value(value) is not None or self._in_rows(order, stored=i >= structured.input_count)
            for i, (value, order) in operands
        )

    def _reduces(self, op: linalg.ops.GenericOp) -> bool:
        """Whether `op` reduces what is per column alone, or nothing else; or both, to what can be stored per column."""
        column, halves = self.column_of(op), any(dtype_of(value.type) in HALVES for value in op.results)
        if column is not None and not _reduces_both(op, column):
            return True
        return combiners(op) is not None and column is not None and not halves

    def _in_rows(self, order: Order, *, stored: bool) -> bool:
        """(.., group, column), or (.., group) of what is as little as that, or neither of them; what is `stored` may
        have others behind."""
        inside = [i for i, class_ in enumerate(order) if class_ in self.columns]
        if inside:
            last = stored or inside[-1] == len(order) - 1
            return last and len(inside) == 1 and order[: inside[0]][-1:] == [self.group]
        return self.group not in order or (order[-1] == self.group and self.outer.issuperset(order))


class _Rewriting:
    """Rewrites a copy of one dispatch."""

    def __init__(self, view: DispatchView, rows: _Rows) -> None:
        self.view, self.rows = view, rows
        self.entry = view.entry.clone()
        self.entry.attributes.pop(LOOPS_ATTRIBUTE, None)
        for old, new in zip(view.entry.walk(), self.entry.walk(), strict=True):
            new.location = old.location
        self.spread = dict[SSAValue, SSAValue]()
        self.columns = dict[Operation, int]()
        self.last: linalg.ops.GenericOp | None = None

    def run(self) -> GroupedColumns:
        """The copy, every generic of it rewritten."""
        copies = list(self.entry.body.block.ops)
        for old, new in zip(list(self.view.entry.body.block.ops), copies, strict=True):
            if is_generic(old) and is_generic(new) and (column := self.rows.column_of(old)) is not None:
                self._rewrite(old, new, column)
        view = DispatchView(self.entry, self.view.serial, self.view.shared)
        classes, column = self._classes(view)
        assert self.last is not None
        order = _order(view, self.last.inputs[0], StructuredOp(self.last).input_maps[0], classes.of_op(self.last))
        assert order[-2] is not None
        return GroupedColumns(view, classes, order[-2], column, frozenset(self.spread.values()))

    def _rewrite(self, old: linalg.ops.GenericOp, new: linalg.ops.GenericOp, column: int) -> None:
        per_group = [order[-1:] == [self.rows.group] for order in self.rows.orders(old)]
        inputs = per_group[: StructuredOp(old).input_count]
        if any(inputs):
            new = self._per_column(new, inputs, column)
        if _reduces_both(new, column):
            new, column = self._split(new, column)
        self.columns[new] = column
        if column in StructuredOp(new).reduction:
            self.last = new

    def _classes(self, view: DispatchView) -> tuple[BodyClasses, int]:
        """The classes of the copy's loops, those along columns joined; and that one."""
        loops, body = view.loops, view.entry.body.block
        numbers = dict(zip(members_of(body), loops.classes, strict=True))
        columns = {numbers[op][loop] for op, loop in self.columns.items()}
        column = min(one for one in columns if one is not None)
        joined = tuple(tuple(column if one in columns else one for one in own) for own in loops.classes)
        return BodyClasses(replace(loops, classes=joined), body, view.shapes), column

    def _per_column(self, op: linalg.ops.GenericOp, per_group: Sequence[bool], column: int) -> linalg.ops.GenericOp:
        """`op` with those of its inputs that it reads per group read per column instead."""
        structured = StructuredOp(op)
        inputs, maps = list(structured.inputs), list(structured.maps)
        for i, value in enumerate(structured.inputs):
            if per_group[i]:
                if value not in self.spread:
                    self.spread[value] = self._for_each_column(op, value)
                inputs[i] = self.spread[value]
                maps[i] = AffineMap(structured.rank, 0, (*maps[i].results, AffineExpr.dimension(column)))
        new = create_generic(inputs, structured.outputs, op.body.clone(), maps, structured.iterators)
        new.attributes.update(op.attributes)
        Emitter.before(op).add(new)
        _replace(op, new)
        return new

    def _for_each_column(self, op: Operation, value: SSAValue) -> SSAValue:
        """`value`, which is there before `op`, again for each column."""
        emit, rank = Emitter.before(op), len(shape_of(value))
        into = self._wider(emit, value)
        made = emit.elementwise([value], into, lambda b: b.args[0], [dims_map(rank + 1, range(rank))])
        assert isinstance(made, OpResult)
        self.columns[made.op] = rank
        return made

    def _wider(self, emit: Emitter, value: SSAValue) -> SSAValue:
        """An empty tensor of the sizes of `value`, and a column's behind."""
        shape = shape_of(value)
        dynamic = [emit.dim(value, axis) for axis, size in enumerate(shape) if size == DYNAMIC_INDEX]
        type_ = attributes.tensor_type(element_of(value), (*shape, self.rows.width))
        return emit.add(create_empty(type_, dynamic)).tensor

    def _split(self, op: linalg.ops.GenericOp, column: int) -> tuple[linalg.ops.GenericOp, int]:
        """Reduce all loops of `op` but `column`, then that; the second of both, and its loop along columns."""
        down = self._down(op, column)
        self.columns[down] = column
        emit, rank, found = Emitter.before(op), len(shape_of(op.results[0])), combiners(op)
        assert found is not None
        across = emit.generic(
            down.results,
            StructuredOp(op).outputs,
            [*[identity_map(rank + 1)] * len(found), *[dims_map(rank + 1, range(rank))] * len(found)],
            [*[PARALLEL] * rank, REDUCTION],
            lambda b: [b.op(type(one.op), b.args[len(found) + i], b.args[i]) for i, one in enumerate(found)],
        )
        _replace(op, across)
        return across, rank

    def _down(self, op: linalg.ops.GenericOp, column: int) -> linalg.ops.GenericOp:
        structured, found, emit = StructuredOp(op), combiners(op), Emitter.before(op)
        assert found is not None
        starts = zip(found, structured.outputs, strict=True)
        into = [emit.fill(combiner.neutral, self._wider(emit, value)) for combiner, value in starts]
        wider = [AffineMap(m.num_dims, 0, (*m.results, AffineExpr.dimension(column))) for m in structured.output_maps]
        iterators = [PARALLEL if loop == column else one for loop, one in enumerate(structured.iterators)]
        maps = [*structured.input_maps, *wider]
        down = emit.add(create_generic(structured.inputs, into, op.body.clone(), maps, iterators))
        down.attributes.update(op.attributes)
        return down


def _reduces_both(op: linalg.ops.GenericOp, column: int) -> bool:
    """Whether `op` reduces its loop along columns and others."""
    reduction = StructuredOp(op).reduction
    return column in reduction and len(reduction) > 1


def _replace(op: linalg.ops.GenericOp, new: linalg.ops.GenericOp) -> None:
    for result, other in zip(op.results, new.results, strict=True):
        result.replace_all_uses_with(other)
    op.detach()
    op.erase()
