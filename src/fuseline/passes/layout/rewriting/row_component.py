"""What is in memory by the time an op runs, whatever fusion does, though its rows are those of the op.

    x ──> product ──reshape──> attention ──reshape──> product ──> add ──> norm ──> product ──> y
    └──────────────────────────────────────────────────────────────^

Going up from the maker of `y`, rows are passed from op to op until a reshape, a window, or an operand that is needed
whole. What lies behind one of those is an earlier dispatch, and so is all that it is made from: `x` is stored, too,
though the add reads it row by row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from xdsl.dialects import linalg
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.structured import HEAVY, StructuredOp, is_generic, kind
from fuseline.dispatch.arms import operands_of
from fuseline.ir.fast.direct import ops_of
from fuseline.ir.reachable import reachable
from fuseline.passes.layout.rewriting.loops import dims_in
from fuseline.passes.layout.rewriting.reshapes import root_of
from fuseline.passes.layout.rewriting.scope import Scope

Loops = frozenset[int]


def made_before(scope: Scope, maker: OpResult, axes: Collection[int]) -> set[Operation]:
    """The ops of earlier dispatches than that of the generic which makes `maker`, if it shares the rows `axes` of this
    result with what it is made from."""
    before: set[Operation] = set()
    rows: dict[Operation, Loops] = {}
    _ask(rows, maker, axes)
    for op in reversed(ops_of(scope.block)):
        if op not in rows or op in before or not is_generic(op):
            continue
        for value, map_ in _reads(op):
            if not _passes_on(rows, op, value, map_):
                _add_makers(root_of(value), before)
    return before


def _reads(op: linalg.ops.GenericOp) -> Iterator[tuple[SSAValue, AffineMap]]:
    view = StructuredOp(op)
    yield from zip(view.inputs, view.input_maps, strict=True)


def _passes_on(rows: dict[Operation, Loops], op: Operation, value: SSAValue, map_: AffineMap) -> bool:
    """Whether the maker of an operand may run row by row with `op`, and has its rows noted then. An operand without
    rows says nothing, but for roots: they need it whole."""
    carried = rows[op] & dims_in(map_)
    if not carried:
        return kind(op) not in HEAVY
    if carried != rows[op] or type(value) is not OpResult or not is_generic(value.op):
        return False
    at = [axis for axis, expr in enumerate(map_.results) if type(expr) is AffineDimExpr and expr.position in carried]
    return _ask(rows, value, at)


def _ask(rows: dict[Operation, Loops], value: OpResult, axes: Collection[int]) -> bool:
    assert is_generic(value.op)
    view = StructuredOp(value.op)
    exprs = [view.output_maps[value.index].results[axis] for axis in axes]
    loops = frozenset(expr.position for expr in exprs if type(expr) is AffineDimExpr)
    known = rows.setdefault(value.op, loops)
    return known == loops and len(loops) == len(axes)


def _add_makers(value: SSAValue, found: set[Operation]) -> None:
    """Whatever `value` is made from, the op that makes it included."""
    found |= set(reachable(_makers([value]), lambda op: () if op in found else _makers(operands_of(op))))


def _makers(values: Iterable[SSAValue]) -> list[Operation]:
    return [value.op for value in values if type(value) is OpResult]
