"""Loops and dimensions of size 1 disappear from structured ops, pads, slices, concats and transposes.

    generic (d0 < 1, d1 < 7) x[d0, d1] + b[0, d1]      =>      expand_shape(generic (d0 < 7) collapse_shape(x)[d0] +
                                                               collapse_shape(b)[d0])

The reshapes around neighbouring ops cancel, since a chain of reshapes is always rebuilt from its root; what remains
sits at the border of the program, where a reshape costs nothing. Every generic keeps at least one loop and every value
at least one dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from fuseline.analysis.structured import is_generic
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_concat
from fuseline.ir.fast.direct import operand_of, operands_of, ops_of, result_of, users_of_value
from fuseline.passes.layout.rewriting.mixed import joined
from fuseline.passes.layout.rewriting.pads import high_of, low_of, outer_value, pad
from fuseline.passes.layout.rewriting.permutation import permutation_of, transpose
from fuseline.passes.layout.rewriting.reshapes import ReshapeOp, can_reshape, reshape
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass
from fuseline.passes.layout.rewriting.unit_dims import Squeezer, kept_axes
from fuseline.passes.layout.rewriting.unit_loops import drop_unit_loops


@dataclass(frozen=True)
class FoldUnitDimsPass(ScopedPass):
    """Drops loops and dimensions of size 1."""

    name = "fold-unit-dims"

    def rewrite(self, scope: Scope) -> None:
        """Squeeze each op by itself, and what the caller gets back into its shape at the end."""
        scope.lift_sizes()
        squeezer = Squeezer(scope)
        for inner in ops_of(scope.block):
            _visit(scope, squeezer, inner)
        squeezer.close()
        scope.sweep()


def _visit(scope: Scope, squeezer: Squeezer, op: Operation) -> None:
    if is_generic(op):
        if all(squeezer.can(value) for value in operands_of(op)):
            drop_unit_loops(scope, squeezer, op)
        return
    rule = _RULES.get(type(op))
    if rule is None or not can_reshape(scope, scope.dims(result_of(op))):
        return
    new = rule(scope, squeezer, op)
    if new is not None:
        squeezer.stand_for(result_of(op), new)


def _transpose(scope: Scope, squeezer: Squeezer, op: Operation) -> SSAValue | None:
    assert type(op) is linalg.ops.TransposeOp
    source, permutation = operand_of(op, 0), permutation_of(op)
    kept = kept_axes(shape_of(source))
    if len(kept) == len(permutation):
        return None
    order = [kept.index(axis) for axis in permutation if axis in kept]
    return transpose(scope, Emitter.before(op), squeezer.keep(source, kept), order)


def _pad(scope: Scope, squeezer: Squeezer, op: Operation) -> SSAValue | None:
    assert type(op) is tensor.PadOp
    low, high, shape = low_of(op), high_of(op), shape_of(op.source)
    kept = [axis for axis, size in enumerate(shape) if size != 1 or low[axis] != 0 or high[axis] != 0]
    if len(kept) in (0, len(shape)):
        return None
    at = Emitter.before(op)
    value = outer_value(op, at)
    if value is None:
        return None
    result = [shape_of(op.result)[axis] for axis in kept]
    source = squeezer.keep(op.source, kept)
    return pad(at, source, [low[axis] for axis in kept], [high[axis] for axis in kept], value, result).result


def _slice(scope: Scope, squeezer: Squeezer, op: Operation) -> SSAValue | None:
    """Unit dimensions of the source go; a dimension of which one element is taken stays in the slice and is collapsed
    after it."""
    assert type(op) is tensor.ExtractSliceOp
    shape, sizes = shape_of(op.source), joined(op.static_sizes, op.sizes)
    kept = [axis for axis, size in enumerate(shape) if size != 1] or [len(shape) - 1]
    if len(kept) == len(shape) == len(shape_of(op.result)):
        return None
    offsets, strides = joined(op.static_offsets, op.offsets), joined(op.static_strides, op.strides)
    if any(offsets[axis] != 0 for axis in range(len(shape)) if axis not in kept):
        return None
    at = Emitter.before(op)
    type_ = TensorType(
        element_of(op.source), [size if isinstance(size, int) else -(2**63) for size in (sizes[axis] for axis in kept)]
    )
    new = tensor.ExtractSliceOp(
        squeezer.keep(op.source, kept),
        *([items[axis] for axis in kept] for items in (offsets, sizes, strides)),
        result_type=type_,
    )
    return at.add(new).result


def _concat(scope: Scope, squeezer: Squeezer, op: Operation) -> SSAValue | None:
    assert type(op) is tensor.ConcatOp
    axis, shape, along = op.dim.value.data, shape_of(op.result), _joined_along(op)
    kept = [i for i, size in enumerate(shape) if size != 1 or i in along]
    if len(kept) == len(shape):
        return None
    at = Emitter.before(op)
    pieces = [squeezer.keep(piece, kept) for piece in op.inputs]
    type_ = attributes.tensor_type(element_of(op.result), tuple([shape[i] for i in kept]))
    return at.add(create_concat(pieces, kept.index(axis), type_)).result


def _joined_along(op: tensor.ConcatOp) -> set[int]:
    """The dimensions along which a concat joins its parts, and those that it is a part of."""
    readers = [user for user in users_of_value(op.result) if type(user) is tensor.ConcatOp]
    return {op.dim.value.data}.union(*map(_joined_along, readers))


def _reshape(scope: Scope, squeezer: Squeezer, op: Operation) -> SSAValue | None:
    """A reshape becomes one between the sizes without ones, and back; nothing where those are equal."""
    assert isinstance(op, ReshapeOp)
    source, dims = op.src, scope.dims(result_of(op))
    kept, after = kept_axes(shape_of(source)), kept_axes(dims)
    core = squeezer.keep(source, kept) if squeezer.can(source) else source
    if core is source and len(after) == len(dims):
        return None
    return reshape(scope, Emitter(InsertPoint.before(op), location=op.location), core, [dims[axis] for axis in after])


_RULES: dict[type[Operation], Callable[[Scope, Squeezer, Operation], SSAValue | None]] = {
    linalg.ops.TransposeOp: _transpose,
    tensor.PadOp: _pad,
    tensor.ExtractSliceOp: _slice,
    tensor.ConcatOp: _concat,
    tensor.ExpandShapeOp: _reshape,
    tensor.CollapseShapeOp: _reshape,
}

EXPORT = FoldUnitDimsPass
