"""Transposes absorbed by a generic: an operand is read, or a result written, in another order of dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import linalg, tensor
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.rewriter import InsertPoint

from fuseline.analysis.combining import in_fold_order
from fuseline.analysis.narrow_products import multiplies_narrow
from fuseline.analysis.structured import WINDOWS, Kind, StructuredOp, captured_tensors, is_constant, kind
from fuseline.analysis.structured_op import input_count
from fuseline.analysis.walks import loops_behind
from fuseline.ir.build import Emitter
from fuseline.ir.fast.direct import body_of, operand_of, operands_of, ops_of, set_operands
from fuseline.passes.layout.rewriting.generics import (
    extracts_of,
    finish,
    is_full,
    order_loops,
    permuted_results,
    plain_loops,
    rebuilt,
    set_input,
)
from fuseline.passes.layout.rewriting.permutation import (
    Permutation,
    apply,
    init_like,
    inverse,
    is_identity,
    permutation_of,
    transpose,
    transposed_input,
    users_of,
)
from fuseline.passes.layout.rewriting.reshapes import root_of
from fuseline.passes.layout.rewriting.scope import Scope

# Kinds whose loops follow the layout of what they read; the others (contractions, windows) keep the loop order they
# were written with.
_FOLLOWERS = (Kind.ELEMENTWISE, Kind.COPY, Kind.TRANSPOSE, Kind.BROADCAST, Kind.GATHER, Kind.REDUCTION)


def absorb_operands(op: linalg.ops.GenericOp) -> bool:
    """Read every transposed operand of `op` (and every transposed tensor that its body extracts from) where it lies; in
    place."""
    changed = False
    for i, value in enumerate(operands_of(op)[: input_count(op)]):
        found = transposed_input(value)
        if found is not None and not folds_away(found[1]) and not _tears_pairs(op, i, found[2]):
            _, source, permutation = found
            set_input(op, i, source, permuted_results(op.indexing_maps.data[i].data, inverse(permutation)))
            changed = True
    if any(type(inner) is tensor.ExtractOp for inner in ops_of(body_of(op))):
        changed |= _absorb_captured(op)
    return changed


def _tears_pairs(op: linalg.ops.GenericOp, position: int, permutation: Permutation) -> bool:
    """Whether a convolution of narrow integers reads its channels side by side, which it multiplies in pairs, and would
    not without the transpose: what centres the integers may as well write them in that order."""
    if kind(op) is not Kind.CONVOLUTION or not multiplies_narrow(op):
        return False
    view = StructuredOp(op)
    last = view.input_maps[position].results[-1]
    return (
        isinstance(last, AffineDimExpr) and last.position in view.reduction and permutation[-1] != len(permutation) - 1
    )


def folds_away(value: SSAValue) -> bool:
    """Whether `value` is a constant that only transposes of one kind read, so that fold-constants stores it transposed,
    once."""
    root = root_of(value)
    if not is_constant(root):
        return False
    readers = users_of(root)
    return len(readers) == 1 or len({_layout(reader) for reader in readers}) == 1


def _layout(reader: Operation) -> object:
    return permutation_of(reader) if type(reader) is linalg.ops.TransposeOp else reader


def _absorb_captured(op: linalg.ops.GenericOp) -> bool:
    changed = False
    for value in captured_tensors(op):
        found = transposed_input(value)
        if found is None or folds_away(found[1]):
            continue
        _, source, permutation = found
        for extract in extracts_of(op, value):
            set_operands(extract, [source, *apply(inverse(permutation), list(extract.indices))])
        changed = True
    return changed


def raised_transpose(scope: Scope, op: linalg.ops.GenericOp) -> SSAValue | None:
    """`linalg.transpose` for a generic that only permutes dimensions; None for any other."""
    view = StructuredOp(op)
    if (
        len(operands_of(op)) != 2
        or view.input_count != 1
        or view.reduction
        or not is_full(view, view.maps[0])
        or not is_full(view, view.maps[1])
    ):
        return None
    last = body_of(op).last_op
    if last is None or len(operands_of(last)) != 1 or operand_of(last, 0) is not body_of(op).args[0]:
        return None
    read, written = plain_loops(view.maps[0]), plain_loops(view.maps[1])
    assert read is not None and written is not None
    return transpose(scope, Emitter.before(op), operand_of(op, 0), [read.index(loop) for loop in written])


def follow_operands(scope: Scope, op: linalg.ops.GenericOp) -> linalg.ops.GenericOp:
    """Give `op` the loop order of its leading operand (reduction loops among themselves keep theirs where the fold
    depends on it), and results in loop order with transposes after them that
    restore the old layout.

    Answers the generic that stands in place of `op` (itself if nothing changed).
    """
    what = kind(op)
    if what in _FOLLOWERS:
        order = _leading_order(scope, op)
        order = None if order is None else in_fold_order(StructuredOp(op), order)
        if order is not None and not is_identity(order):
            order_loops(op, order)
        return _results_in_loop_order(scope, op)
    return _results_in_loop_order(scope, op) if what in WINDOWS else op


def _leading_order(scope: Scope, op: linalg.ops.GenericOp) -> Permutation | None:
    """The loop order of the operands that weigh most; None where none names every loop. Ties go to the present order,
    then to the least."""
    view = StructuredOp(op)
    votes: dict[Permutation, int] = {}
    for value, map_ in zip(view.inputs, view.input_maps, strict=True):
        weight = _weight(value)
        if weight and is_full(view, map_):
            loops = tuple(plain_loops(map_) or ())
            votes[loops] = votes.get(loops, 0) + weight
    if not votes:
        return _repeated_order(view) if kind(op) is Kind.BROADCAST else _gathered_order(view)
    return max(votes, key=lambda loops: (votes[loops], is_identity(loops), tuple(-loop for loop in loops)))


def _weight(value: SSAValue) -> int:
    root = root_of(value)
    if is_constant(root):
        return 0
    return 1 if type(root) is BlockArgument else 3


def _repeated_order(view: StructuredOp) -> Permutation | None:
    """The loop order in which a broadcast reads the one tensor that it repeats, each loop that repeats behind the loop
    it stands behind: an upsampling has the order of its image."""
    read = plain_loops(view.input_maps[0]) if view.input_count == 1 else None
    if read is None or list(read) == sorted(read):
        return None
    order, behind = list(read), -1
    for loop in range(view.rank):
        if loop not in read:
            order.insert(order.index(behind) + 1 if behind >= 0 else 0, loop)
        behind = loop
    return tuple(order)


def _gathered_order(view: StructuredOp) -> Permutation | None:
    """The loop order in which a gather traverses the tensor it extracts from, where each coordinate depends on one loop
    of its own."""
    for value in captured_tensors(view.op):
        if is_constant(value):
            continue
        for extract in extracts_of(view.op, value):
            loops = [loops_behind(view, index) for index in extract.indices]
            flat = [loop for found in loops for loop in found]
            if all(len(found) == 1 for found in loops) and sorted(flat) == list(range(view.rank)):
                return tuple(flat)
    return None


def _results_in_loop_order(scope: Scope, op: linalg.ops.GenericOp) -> linalg.ops.GenericOp:
    view = StructuredOp(op)
    orders = [_increasing(plain_loops(map_)) for map_ in view.output_maps]
    if all(order is None for order in orders):
        return op
    return write_results(scope, op, orders)


def _increasing(loops: Sequence[int] | None) -> Permutation | None:
    """The permutation that puts `loops` in increasing order; None where they are, or are no plain loops."""
    if loops is None or list(loops) == sorted(loops):
        return None
    return tuple(sorted(range(len(loops)), key=lambda i: loops[i]))


def write_results(scope: Scope, op: linalg.ops.GenericOp, orders: Sequence[Permutation | None]) -> linalg.ops.GenericOp:
    """`op` with result `i` written permuted by `orders[i]`, followed by the transposes that restore it for its users;
    replaces `op`."""
    at = Emitter.before(op)
    view = StructuredOp(op)
    inputs, outputs, maps = list(view.inputs), list(view.outputs), list(view.maps)
    for i, order in enumerate(orders):
        if order is not None:
            outputs[i] = init_like(scope, at, outputs[i], order)
            maps[len(inputs) + i] = permuted_results(maps[len(inputs) + i], order)
    old_results = list(op.results)
    new = rebuilt(op, inputs, outputs, maps, view.iterators)
    after = Emitter(InsertPoint.after(new), location=new.location)
    results = [
        value if order is None else transpose(scope, after, value, inverse(order))
        for value, order in zip(new.results, orders, strict=True)
    ]
    assert len(old_results) == len(results)
    finish(op, results)
    return new
