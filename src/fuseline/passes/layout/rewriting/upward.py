"""How far an expand_shape can climb, decided before anything moves; and the climb."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import tensor
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind, producer_of
from fuseline.ir.build import Emitter
from fuseline.ir.dim import Dim
from fuseline.ir.fast.direct import operands_of, replace_uses
from fuseline.passes.layout.rewriting.free_reshapes import cancels, is_free
from fuseline.passes.layout.rewriting.loops import can_expand, dims_in, expand_loops, expanded_dims
from fuseline.passes.layout.rewriting.permutation import is_shared
from fuseline.passes.layout.rewriting.reshapes import reshape, segments
from fuseline.passes.layout.rewriting.scope import Scope

# Ops through whose parallel loops an expand climbs. A window's loops are traversed with an offset, so it stops there.
_CLIMBABLE = (Kind.ELEMENTWISE, Kind.COPY, Kind.BROADCAST, Kind.REDUCTION, Kind.CONTRACTION, Kind.GATHER)
# How many ops one climb may cross: far more than lie between two reshapes of a model, few enough that a pass stays
# linear.
_MAX_CLIMB = 24

Stays = Callable[[Operation, SSAValue], bool]
"""Whether a reshape of an operand of an op costs nothing, and is to stay where it is."""


def nothing_stays(reader: Operation, operand: SSAValue) -> bool:
    """Reshapes climb as far as they can."""
    del reader, operand
    return False


def splits_of(scope: Scope, value: OpResult, dims: Sequence[Dim]) -> dict[int, list[Dim]] | None:
    """The loops of the generic that makes `value` and the sizes to split them into so that the result has sizes `dims`;
    None where `dims` does more than split dimensions that are plain parallel loops."""
    assert is_generic(value.op)
    view = StructuredOp(value.op)
    splits: dict[int, list[Dim]] = {}
    start = 0
    before = scope.dims(value)
    cut = segments(before, dims)
    if any(left != 1 for left, _ in cut) or len(cut) != len(before):
        return None
    for (_, right), expr in zip(cut, view.output_maps[value.index].results, strict=True):
        if right > 1:
            if type(expr) is not AffineDimExpr or view.iterators[expr.position] != "parallel":
                return None
            splits[expr.position] = list(dims[start : start + right])
        start += right
    return splits


def climbs(
    scope: Scope,
    value: SSAValue,
    dims: Sequence[Dim],
    budget: int = _MAX_CLIMB,
    stays: Stays = nothing_stays,
) -> tuple[bool, bool]:
    """Whether `value` can be made with sizes `dims` without a reshape that costs anything, and whether a reshape above
    cancels then.

    `value` must have one user (the reshape in question).
    """
    if is_free(value):
        return True, False
    if cancels(scope, value, dims):
        return True, True
    if budget == 0 or type(value) is not OpResult or not is_generic(value.op) or is_shared(value):
        return False, False
    return _through(scope, value, dims, budget, stays)


def _through(scope: Scope, value: OpResult, dims: Sequence[Dim], budget: int, stays: Stays) -> tuple[bool, bool]:
    op = value.op
    assert is_generic(op)
    splits = splits_of(scope, value, dims) if kind(op) in _CLIMBABLE else None
    view = StructuredOp(op)
    if not splits or not can_expand(scope, view, splits):
        return False, False
    affected = [(operand, sizes) for operand, sizes in _affected(scope, view, splits) if not stays(op, operand)]
    found = [climbs(scope, operand, sizes, budget - 1, stays) for operand, sizes in affected]
    return all(fits for fits, _ in found), any(meets for _, meets in found)


def _affected(
    scope: Scope, view: StructuredOp, splits: Mapping[int, Sequence[Dim]]
) -> list[tuple[SSAValue, list[Dim]]]:
    return [
        (value, expanded_dims(scope, value, map_, splits))
        for value, map_ in zip((*view.inputs, *view.outputs), view.maps, strict=True)
        if dims_in(map_) & splits.keys()
    ]


def can_expand_result(scope: Scope, value: SSAValue, dims: Sequence[Dim]) -> bool:
    """Whether an expand of `value` to `dims` would climb until it costs nothing."""
    return climbs(scope, value, dims)[0]


def climb(scope: Scope, op: tensor.ExpandShapeOp, stays: Stays = nothing_stays) -> None:
    """Move `op` up, step by step: each step leaves new expands on the operands, which climb in turn."""
    work = [op]
    while work:
        current = work.pop()
        value = current.src
        if type(value) is not OpResult or not is_generic(value.op):
            continue
        splits = splits_of(scope, value, scope.dims(current.result))
        if not splits or not can_expand(
            scope, StructuredOp(value.op), splits
        ):  # a reshape that cancels may leave one on a window
            continue
        new = expand_loops(scope, value.op, splits)
        replace_uses(current.result, reshape(scope, Emitter.before(current), current.src, scope.dims(current.result)))
        work.extend(
            made
            for made in map(producer_of, operands_of(new))
            if type(made) is tensor.ExpandShapeOp and made not in work and not stays(new, made.src)
        )
