"""Which ops make rows together: reductions along them and what is computed of those, up to values that are there in
any case. Each op has names for its loops: the dimensions of the result that they traverse.

    x ─> sum (i) ─> mean (i) ─┐
    x ─────────────────────> x - mean (i, k)          names of the result: i, k; `sum` has i alone, and walks along k
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import linalg
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.structured import Kind, StructuredOp, captured_tensors, is_constant, is_generic, kind
from fuseline.ir.fast.direct import ops_of
from fuseline.ir.fast.nesting import ops_inside
from fuseline.ir.scalar_ops import INTEGER_DIVISIONS
from fuseline.passes.layout.rewriting.permutation import is_init, users_of
from fuseline.passes.layout.rewriting.reshapes import root_of
from fuseline.passes.layout.rewriting.scope import Scope

Names = dict[int, int]
"""Loop of an op -> dimension of the result."""

NO_CHAIN = "what makes the rows is no chain of reductions"

_POINTWISE = (Kind.ELEMENTWISE, Kind.COPY, Kind.BROADCAST)
_MEMBERS = (*_POINTWISE, Kind.REDUCTION)


@dataclass(slots=True)
class RowCluster:
    """The ops, makers before readers, with the names of their loops; the last one makes the result. `leaves`: what they
    read along those loops. `refused`: why they are none."""

    names: dict[linalg.ops.GenericOp, Names] = field(default_factory=dict)
    leaves: list[SSAValue] = field(default_factory=list)
    refused: str | None = None


def row_cluster(scope: Scope, result: OpResult, axes: Sequence[int]) -> RowCluster:
    """The cluster that makes `result`, with names for those of its dimensions that are in `axes`."""
    found, last = RowCluster(), result.op
    wanted: dict[SSAValue, list[dict[int, int]]] = {result: [{axis: axis for axis in axes}]}
    for op in reversed(ops_of(scope.block)):
        if is_generic(op) and any(any(wanted.get(value, ())) for value in op.results):
            if op is last or _joins(op, found):
                found.refused = found.refused or _take(found, op, wanted)
    found.leaves = [value for value, ways in wanted.items() if any(ways)]
    found.refused = found.refused or _refusal(found)
    found.names = dict(reversed(found.names.items()))
    return found


def _joins(op: linalg.ops.GenericOp, found: RowCluster) -> bool:
    """Whether nobody else reads what `op` makes."""
    return kind(op) in _MEMBERS and all(user in found.names for user in users_of(op.results[0]))


def _take(found: RowCluster, op: linalg.ops.GenericOp, wanted: dict[SSAValue, list[Names]]) -> str | None:
    view = StructuredOp(op)
    ways = wanted.pop(op.results[0])
    if kind(op) not in _MEMBERS or len(op.results) != 1 or captured_tensors(op):
        return NO_CHAIN
    if any(type(inner) in INTEGER_DIVISIONS for inner in ops_inside(op)):  # they stop at zeros, as may lie outside
        return "a division of integers has no value outside of what is padded"
    names = [_loops(view, view.output_maps[0], axes) for axes in ways]
    if any(other is None or other != names[0] for other in names):
        return "a value is read under two namings of its dimensions"
    assert names[0] is not None
    found.names[op] = names[0]
    for operand, map_ in zip(view.operands, view.maps, strict=True):
        axes = named_axes(map_, names[0])
        if axes is None:
            return "a dimension is read in steps"
        wanted.setdefault(operand, []).append(axes)
    return None


def _loops(view: StructuredOp, map_: AffineMap, axes: Mapping[int, int]) -> Names | None:
    """The loops behind dimensions `axes` of a result; None where one is not a loop of its own."""
    found: Names = {}
    for axis, name in axes.items():
        expr = map_.results[axis]
        if type(expr) is not AffineDimExpr or view.iterators[expr.position] != "parallel" or expr.position in found:
            return None
        found[expr.position] = name
    return found


def named_axes(map_: AffineMap, names: Names) -> dict[int, int] | None:
    """The dimensions of an operand that named loops traverse; None where one is no plain loop."""
    found: dict[int, int] = {}
    for axis, expr in enumerate(map_.results):
        if type(expr) is AffineDimExpr:
            if expr.position in names:
                found[axis] = names[expr.position]
        elif dims_of(expr) & names.keys():
            return None
    return found


def _refusal(found: RowCluster) -> str | None:
    kinds = [kind(op) for op in found.names]  # readers before makers
    if kinds[0] not in _POINTWISE or Kind.REDUCTION not in kinds:
        return NO_CHAIN
    if any(not _is_there(value, found) for value in found.leaves):
        return "what the rows are made of is made for them alone"
    return None


def _is_there(value: SSAValue, found: RowCluster) -> bool:
    """Whether `value` lies in memory in any case: an argument, a constant, or what others read, too."""
    root = root_of(value)
    if type(root) is BlockArgument or is_constant(root) or is_init(root):
        return True
    return any(_reads_elsewhere(user, found) for user in users_of(root))


def _reads_elsewhere(user: Operation, found: RowCluster) -> bool:
    if is_generic(user):
        return user not in found.names
    results = user.results
    return not results or any(_reads_elsewhere(other, found) for value in results for other in users_of(value))
