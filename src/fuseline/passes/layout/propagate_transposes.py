"""Transposes sink and bubble until they cancel or land in the maps of a generic, in a constant, or at the border of the
program.

    conv(nhwc) -> transpose -> relu(nchw) -> pad -> transpose -> conv(nhwc)      =>      conv -> relu -> pad -> conv
            (all nhwc)

Going down, a generic reads a transposed operand where it lies, then takes the loop order of the operand that leads and
hands the transpose on below itself; pads, slices, reshapes and concats swap with it. What is stuck then (at a return, a
host call, a reshape that takes the dimensions apart) goes up into the map with which a generic writes its result. One
traversal each way.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import linalg, tensor
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.structured import HEAVY, Kind, is_constant, is_generic, kind
from fuseline.ir.build import Emitter
from fuseline.ir.fast.direct import erase, operand_of, operands_of, ops_of, replace_uses, result_of, set_operands
from fuseline.passes.layout.rewriting.absorb import absorb_operands, follow_operands, raised_transpose, write_results
from fuseline.passes.layout.rewriting.flattened import permute_flattened_contraction
from fuseline.passes.layout.rewriting.generics import extracts_of
from fuseline.passes.layout.rewriting.permutation import (
    Permutation,
    apply,
    merge_equal_transposes,
    permutation_of,
    transpose,
    users_of,
)
from fuseline.passes.layout.rewriting.repeats import moved_by, source_order
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass
from fuseline.passes.layout.rewriting.transposes_down import sink_below
from fuseline.passes.layout.rewriting.transposes_up import bubble_above

# Ops that read windows or long rows: they are not made to read across memory so that a border transpose disappears.
# What hands a transpose of its result on to its source.
_PASSED = frozenset((tensor.PadOp, tensor.ExtractSliceOp, tensor.CollapseShapeOp, tensor.ExpandShapeOp))
# How many ops a stuck transpose may climb to reach a writer.
_MAX_CLIMB = 64


@dataclass(frozen=True)
class PropagateTransposesPass(ScopedPass):
    """Moves transposes until they cancel or are absorbed."""

    name = "propagate-transposes"

    def rewrite(self, scope: Scope) -> None:
        """Sink all, then bubble what is left."""
        scope.lift_sizes()
        scope.sweep()
        _sink(scope)
        scope.sweep()
        _bubble(scope)
        scope.sweep()


def _sink(scope: Scope) -> None:
    for op in ops_of(scope.block):
        if is_generic(op):
            _sink_into_generic(scope, op)
        else:
            new = sink_below(scope, op)
            if new is not None:
                _replace(op, new)


def _sink_into_generic(scope: Scope, op: linalg.ops.GenericOp) -> None:
    new = raised_transpose(scope, op)
    if new is not None:
        _replace(op, new)
        return
    absorb_operands(op)
    permute_flattened_contraction(scope, op)
    follow_operands(scope, op)


def _replace(op: Operation, value: SSAValue) -> None:
    if value.name_hint is None:
        value.name_hint = result_of(op).name_hint
    replace_uses(result_of(op), value)
    erase(op)


def _bubble(scope: Scope) -> None:
    for op in reversed(ops_of(scope.block)):
        if type(op) is linalg.ops.TransposeOp and op.parent is not None:
            _climb(scope, op)


def _climb(scope: Scope, top: linalg.ops.TransposeOp) -> None:
    """Move `top` up until a writer takes it; it stays where it is if none will."""
    source = operand_of(top, 0)
    merge_equal_transposes(source)
    if result_of(top).first_use is None or not _can_take(source, top, _MAX_CLIMB):
        return
    assert type(source) is OpResult
    if is_generic(source.op):
        _write_transposed(scope, source.op, source.index, top)
        return
    new = bubble_above(scope, top, source.op)
    if new is None:
        return
    permutation = permutation_of(top)
    _replace(top, new)
    if not users_of(source):
        _read_sizes_off(scope, new, source, permutation)
        erase(source.op)
    assert type(new) is OpResult
    for value in list(operands_of(new.op)):
        if type(value) is OpResult and type(value.op) is linalg.ops.TransposeOp:
            _climb(scope, value.op)


def _read_sizes_off(scope: Scope, new: SSAValue, source: SSAValue, permutation: Permutation) -> None:
    """Sizes that were read off `source` are read off `new`, which is `source` permuted and stands before it."""
    for use in list(source.uses):
        size = use.operation
        assert isinstance(size, tensor.DimOp)
        axis = scope.shapes.index(size.index)
        assert isinstance(axis, int)
        _replace(size, Emitter.before(size).dim(new, permutation.index(axis)))


def _can_take(value: SSAValue, reader: Operation, budget: int) -> bool:
    """Whether the op that makes `value` (or one above it) can write it in another layout without a standalone transpose
    elsewhere."""
    if type(value) is not OpResult or budget == 0 or is_constant(value):
        return False
    others = [user for user in users_of(value) if user is not reader]
    if is_generic(value.op):
        return kind(value.op) is not Kind.OTHER and all(_reads_any_layout(user) for user in others)
    if others:
        return False
    if type(value.op) is tensor.ConcatOp:
        return all(is_constant(piece) or _can_take(piece, value.op, budget - 1) for piece in value.op.inputs)
    if type(value.op) is linalg.ops.TransposeOp:
        return True  # the two are one, or none
    if type(value.op) in _PASSED:
        return _can_take(operand_of(value.op, 0), value.op, budget - 1)
    return False


def _reads_any_layout(user: Operation) -> bool:
    return is_generic(user) and kind(user) not in HEAVY


def _write_transposed(scope: Scope, writer: linalg.ops.GenericOp, index: int, top: linalg.ops.TransposeOp) -> None:
    permutation = permutation_of(top)
    readers = [user for user in users_of(writer.results[index]) if user is not top]
    orders = [permutation if i == index else None for i in range(len(writer.results))]
    new = write_results(scope, writer, orders)
    # The restored result now feeds `top` (which undoes it) and the other readers, which absorb it.
    replace_uses(top.res[0], new.results[index])
    erase(top)
    _read_in_order(scope, new)
    for reader in dict.fromkeys(readers):
        if is_generic(reader):
            absorb_operands(reader)


def _read_in_order(scope: Scope, gather: linalg.ops.GenericOp) -> None:
    """Let the source of a gather lie in the order of what the gather writes, where it can be written so: whoever reads
    the gather in place has the source in its addresses."""
    source, order = moved_by(gather), source_order(gather)
    if source is None or order is None:
        return
    (read,) = extracts_of(gather, source)
    if not _can_take(source, read, _MAX_CLIMB):
        return
    top = transpose(scope, Emitter.before(gather), source, order)
    set_operands(read, [top, *apply(order, list(read.indices))])
    if type(top) is OpResult and type(top.op) is linalg.ops.TransposeOp:
        _climb(scope, top.op)


EXPORT = PropagateTransposesPass
