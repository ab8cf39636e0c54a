"""A flattened operand of a contraction whose dimensions were transposed before: the weight takes the permutation.

    contract(collapse(transpose(x)), w)      =>      contract(collapse(x), collapse(transpose(expand(w))))

The summed loop traverses the same products in another order, so nothing is moved at run time where `w` is a constant.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import linalg, tensor
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.moves import groups_of
from fuseline.analysis.structured import Kind, StructuredOp, is_constant, kind, producer_of
from fuseline.ir.build import Emitter
from fuseline.ir.dim import Dim
from fuseline.ir.fast.direct import operands_of
from fuseline.passes.layout.rewriting.generics import set_input
from fuseline.passes.layout.rewriting.permutation import Permutation, transpose, transposed_input
from fuseline.passes.layout.rewriting.reshapes import can_reshape, collapse, expand, grouped, root_of
from fuseline.passes.layout.rewriting.scope import Scope


def permute_flattened_contraction(scope: Scope, op: linalg.ops.GenericOp) -> bool:
    """Apply the rewriting above to each operand of a contraction whose other operand is a constant; in place. Answers
    whether it did."""
    if len(operands_of(op)) != 3 or not any(is_constant(root_of(value)) for value in operands_of(op)[:2]):
        return False
    if kind(op) is not Kind.CONTRACTION:
        return False
    return any(_permute(scope, op, i) for i in range(2))


def _permute(scope: Scope, op: linalg.ops.GenericOp, index: int) -> bool:
    flat = producer_of(op.inputs[index])
    weight = op.inputs[1 - index]
    if type(flat) is not tensor.CollapseShapeOp or not is_constant(root_of(weight)):
        return False
    found = transposed_input(flat.src)
    if found is None:
        return False
    _, source, permutation = found
    plan = _one_group(scope, op, index, flat, permutation)
    if plan is None:
        return False
    group, loop = plan
    at = Emitter.before(op)
    view = StructuredOp(op)
    weight_axis = next(i for i, expr in enumerate(view.input_maps[1 - index].results) if dims_of(expr) == {loop})
    order = sorted(range(len(group)), key=lambda i: permutation[group[i]])
    sizes = [scope.dims(flat.src)[i] for i in group]
    set_input(op, index, collapse(scope, at, source, groups_of(flat)), view.input_maps[index])
    set_input(
        op, 1 - index, _permuted_axis(scope, at, weight, weight_axis, sizes, tuple(order)), view.input_maps[1 - index]
    )
    return True


def _one_group(
    scope: Scope, op: linalg.ops.GenericOp, index: int, flat: tensor.CollapseShapeOp, permutation: Permutation
) -> tuple[list[int], int] | None:
    """The only group of dimensions inside which `permutation` moves anything, and the summed loop that traverses it
    collapsed."""
    view = StructuredOp(op)
    groups = groups_of(flat)
    moved = [i for i, group in enumerate(groups) if [permutation[axis] for axis in group] != group]
    if len(moved) != 1 or sorted(permutation[axis] for axis in groups[moved[0]]) != groups[moved[0]]:
        return None
    expr = view.input_maps[index].results[moved[0]]
    if type(expr) is not AffineDimExpr or view.iterators[expr.position] != "reduction":
        return None
    uses = [map_ for map_ in view.maps if any(expr.position in dims_of(e) for e in map_.results)]
    sizes = [scope.dims(flat.src)[axis] for axis in groups[moved[0]]]
    if len(uses) != 2 or not can_reshape(scope, sizes):
        return None
    return groups[moved[0]], expr.position


def _permuted_axis(
    scope: Scope, at: Emitter, weight: SSAValue, axis: int, sizes: Sequence[Dim], order: Permutation
) -> SSAValue:
    """`weight` with the positions along `axis` re-ordered, as those of a tensor of `sizes` are when its dimensions are
    taken in `order`."""
    dims = scope.dims(weight)
    split = [*dims[:axis], *sizes, *dims[axis + 1 :]]
    groups = grouped([len(sizes) if i == axis else 1 for i in range(len(dims))])
    opened = expand(scope, at, weight, groups, split)
    full = (*range(axis), *(axis + i for i in order), *range(axis + len(sizes), len(split)))
    return collapse(scope, at, transpose(scope, at, opened, full), groups)
