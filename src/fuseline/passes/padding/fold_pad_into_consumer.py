"""Pads move down until they stand right before the window that reads them, one pad per reader.

    pad -> pad                      =>   one pad
    pad(v) -> elementwise f         =>   f -> pad(f(v))            f joins the epilogue of whatever made the operand
    concat(pad(a), pad(b))          =>   pad(concat(a, b))
    pad -> conv1, conv2             =>   pad -> conv1; pad -> conv2

In that form a convolution or pooling reads the padding where it is: it has one reader and nothing lies between. A pad
is never a fill and a copy. Runs after propagate-transposes, which moves pads below transposes.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fuseline.analysis.indexing_maps import is_identity
from fuseline.analysis.structured import WINDOWS, Kind, StructuredOp, is_generic, kind, producer_of
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.passes.layout.rewriting.generics import rebuilt
from fuseline.passes.layout.rewriting.pads import high_of, low_of, outer_value, pad
from fuseline.passes.layout.rewriting.permutation import users_of
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass
from fuseline.passes.padding.constant_bodies import body_value, constant_attribute


@dataclass(frozen=True)
class FoldPadIntoConsumerPass(ScopedPass):
    """Moves every pad right before the window that reads it."""

    name = "fold-pad-into-consumer"

    def rewrite(self, scope: Scope) -> None:
        """Move every pad down first, then copy it to its readers."""
        scope.lift_sizes()
        scope.sweep()
        for inner in list(scope.block.ops):
            _visit(scope, inner)
        scope.sweep()
        for inner in list(scope.block.ops):
            if isinstance(inner, tensor.PadOp):
                _place(inner)


def _visit(scope: Scope, op: Operation) -> None:
    new: SSAValue | None = None
    if isinstance(op, tensor.PadOp):
        new = _merged(op)
    elif isinstance(op, tensor.ConcatOp):
        new = _padded_concat(op)
    elif is_generic(op):
        new = _padded_elementwise(scope, op)
    if new is not None:
        if new.name_hint is None:
            new.name_hint = op.results[0].name_hint
        op.results[0].replace_all_uses_with(new)
        Rewriter.erase_op(op)


def pad_value(op: tensor.PadOp) -> Attribute | None:
    """The constant that `op` pads with; None where it is no constant."""
    last = op.region.block.last_op
    return constant_attribute(last.operands[0]) if last is not None and last.operands else None


def single_pad(value: SSAValue) -> tensor.PadOp | None:
    """The pad with a constant value that makes `value`, if `value` has one reader."""
    op = producer_of(value)
    if isinstance(op, tensor.PadOp) and pad_value(op) is not None and len(users_of(value)) == 1:
        return op
    return None


def _merged(op: tensor.PadOp) -> SSAValue | None:
    """A pad that adds nothing, or a pad of a pad with the same value, as less."""
    low, high = low_of(op), high_of(op)
    if all(size == 0 for size in (*low, *high)) and op.source.type == op.result.type:
        return op.source
    inner = producer_of(op.source)
    if not isinstance(inner, tensor.PadOp) or pad_value(op) is None or pad_value(op) != pad_value(inner):
        return None
    amounts = [low, high, low_of(inner), high_of(inner)]
    if not all(isinstance(size, int) and size >= 0 for sizes in amounts for size in sizes):
        return None
    before, after = (_sums(a, b) for a, b in ((amounts[0], amounts[2]), (amounts[1], amounts[3])))
    at = Emitter.before(op)
    value = outer_value(op, at)
    assert value is not None
    return pad(at, inner.source, before, after, value, shape_of(op.result)).result


def _sums(left: list[int | SSAValue], right: list[int | SSAValue]) -> list[int | SSAValue]:
    return [a + b for a, b in zip(left, right, strict=True) if isinstance(a, int) and isinstance(b, int)]


def _padded_concat(op: tensor.ConcatOp) -> SSAValue | None:
    pads = [single_pad(piece) for piece in op.inputs]
    first = pads[0]
    axis = op.dim.value.data
    if first is None or len(set(op.inputs)) != len(pads):
        return None
    form = (low_of(first), high_of(first), pad_value(first))
    if form[0][axis] != 0 or form[1][axis] != 0:
        return None
    if any(other is None or (low_of(other), high_of(other), pad_value(other)) != form for other in pads):
        return None
    at = Emitter.before(op)
    moved = Emitter(InsertPoint.before(op), location=first.location)
    value = outer_value(first, moved)
    assert value is not None
    sources = [piece.source for piece in pads if piece is not None]
    shape = list(shape_of(sources[0]))
    shape[axis] = shape_of(op.result)[axis]
    joined = at.add(tensor.ConcatOp(sources, axis, TensorType(element_of(op.result), shape))).result
    return pad(moved, joined, form[0], form[1], value, shape_of(op.result)).result


def _padded_elementwise(scope: Scope, op: linalg.ops.GenericOp) -> SSAValue | None:
    """The elementwise op on what was padded, then a pad with what it makes of the padding."""
    first = single_pad(op.inputs[0]) if len(op.inputs) == len(op.results) == 1 else None
    if first is None or any(isinstance(size, int) and size < 0 for size in (*low_of(first), *high_of(first))):
        return None
    if kind(op) is not Kind.ELEMENTWISE or not all(is_identity(map_) for map_ in StructuredOp(op).maps):
        return None
    padding = pad_value(first)
    assert padding is not None
    value = body_value(op, {0: padding})
    return _moved_below(scope, op, first, value) if value is not None else None


def _moved_below(scope: Scope, op: linalg.ops.GenericOp, first: tensor.PadOp, value: Attribute) -> SSAValue | None:
    sizes = scope.dims(first.source)
    if not scope.knows_all(sizes):
        return None
    init = scope.empty(Emitter.before(op), element_of(op.results[0]), sizes)
    shape, low, high = shape_of(op.results[0]), low_of(first), high_of(first)
    view = StructuredOp(op)
    inner = rebuilt(op, [first.source], [init], view.maps, view.iterators)
    moved = Emitter(InsertPoint.before(op), location=first.location)
    scalar = moved.add(arith.ConstantOp(value)).result  # pyright: ignore[reportArgumentType]
    return pad(moved, inner.results[0], low, high, scalar, shape).result


def _place(op: tensor.PadOp) -> None:
    """Right before its reader; a copy for every further window, and for every window where other ops read it too."""
    readers = list(dict.fromkeys(reader for reader in users_of(op.result) if reader.parent is op.parent))
    windows = [reader for reader in readers if is_generic(reader) and kind(reader) in WINDOWS]
    others = len(set(users_of(op.result))) - len(windows)
    for reader in windows[0 if others else 1 :]:
        copy = op.clone()
        Emitter.before(reader).add(copy)
        copy.location = op.location
        reader.operands = [copy.result if operand is op.result else operand for operand in reader.operands]
    if not others and windows:
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(windows[0]))


EXPORT = FoldPadIntoConsumerPass
