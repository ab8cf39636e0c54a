"""16-bit floats that are only moved stay what they are: nothing is widened on the way from one border to the other.

    %w = extf %past                                   %n = truncf %new
    %c = concat %w, %new : tensor<..xf32>       =>    %c = concat %past, %n : tensor<..xf16>
    return truncf %c                                  return %c

Narrowing and moving commute, so the narrowing goes up to where the parts come from, as long as one of them is a half
that was widened; there the two conversions cancel. Where slices of what is computed are put together (a roll), it goes
up to what is cut. A value that something else reads as f32 stays as it is. A scatter
moves, too, where its updates replace what is there, and its halves stay halves whoever reads them: what follows point
by point is written where they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeGuard, cast

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, FloatAttr
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from fuseline.analysis.structured import Kind, is_generic, kind, yielded
from fuseline.analysis.structured_op import input_count
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.element_types import scalar_attribute
from fuseline.ir.fast import attributes
from fuseline.ir.fast.direct import body_of, operand_of, result_of, set_operand, set_type, users_of_value
from fuseline.ir.halves import is_half

Narrow = Callable[[SSAValue, Operation], SSAValue]
"""Makes a value, a part of what is moved, a tensor of halves, before the op that moves it."""

_MOVES = frozenset({Kind.COPY, Kind.TRANSPOSE, Kind.BROADCAST, Kind.RESHAPE, Kind.SLICE, Kind.CONCAT, Kind.PAD})


def only_converts(op: linalg.ops.GenericOp, kind: type[Operation]) -> bool:
    """Whether `op` does nothing but convert the elements of its one input, by an op of this kind."""
    converted = body_of(op).first_op
    if (
        not isinstance(converted, kind)
        or converted.next_op is not body_of(op).last_op
        or input_count(op) != 1
        or len(op.results) != 1
    ):
        return False
    return operand_of(converted, 0) is body_of(op).args[0] and operand_of(
        cast(Operation, converted.next_op), 0
    ) is result_of(converted)


def moved_half(value: SSAValue, element: Attribute, narrow: Narrow) -> SSAValue | None:
    """`value`, a tensor of f32 that one op narrows to `element`, as a tensor of `element`: moved without being widened.

    None where nothing of it was a tensor of `element`; then nothing is changed. `narrow` is asked for the parts that
    are computed.
    """
    if _comes_from(value, element):
        return _narrowed(value, element, narrow)
    return _narrowed(value, element, narrow, cut=True) if _is_cut(value, element) else None


def _is_cut(value: SSAValue, element: Attribute) -> bool:
    """Whether parts of what an op computes are put together to `value`, and nothing else is done with that: it is as
    few elements that are narrowed before they are cut."""
    if not _is_moved(value, element) or not isinstance(value.op, tensor.ConcatOp):
        return False
    parts = [part.owner for part in value.op.inputs]
    if not all(isinstance(part, tensor.ExtractSliceOp) and _is_moved(part.result, element) for part in parts):
        return False
    whole = {part.operands[0] for part in parts if isinstance(part, Operation)}
    if any(DYNAMIC_INDEX in shape_of(one) for one in (value, *whole)):
        return False
    return all(_is_made_for(one, parts) for one in whole) and sum(map(_elements, whole)) <= _elements(value)


def _elements(value: SSAValue) -> int:
    return prod(shape_of(value))


def _is_made_for(value: SSAValue, readers: Sequence[object]) -> bool:
    """Whether an op computes `value`, and only `readers` read it."""
    computed = isinstance(value, OpResult) and is_generic(value.op) and kind(value.op) not in _MOVES - {Kind.COPY}
    return computed and all(user in readers for user in users_of_value(value))


def _comes_from(value: SSAValue, element: Attribute) -> bool:
    """Whether a half is widened, and then moved to `value`, for nobody else."""
    if _widened_from(value, element) is not None:
        return True
    return _is_moved(value, element) and any(
        _comes_from(value.owner.operands[i], element) for i in _moved_operands(value.owner)
    )


def _widened_from(value: SSAValue, element: Attribute) -> SSAValue | None:
    """The tensor of `element` that `value` is the widening of."""
    op = value.owner
    if not isinstance(op, linalg.ops.GenericOp) or not only_converts(op, arith.ExtFOp):
        return None
    in_place = len(set(op.indexing_maps.data)) == 1
    return op.inputs[0] if in_place and element_of(op.inputs[0]) == element else None


def _is_moved(value: SSAValue, element: Attribute) -> TypeGuard[OpResult]:
    """Whether `value` is made by an op that only moves data, for one reader, and could move halves as well."""
    if not isinstance(value, OpResult) or not _moved_operands(value.op):
        return False
    readers = [use for use in value.uses if not isinstance(use.operation, tensor.DimOp)]
    return len(readers) == 1 and (not isinstance(value.op, tensor.PadOp) or _padding(value.op, element) is not None)


def _moved_operands(op: Operation) -> Sequence[int]:
    """The operands whose elements `op` moves to its result; none where it does anything else."""
    if is_generic(op) and kind(op) not in _MOVES:
        return _chosen(op)
    if kind(op) not in _MOVES or isinstance(op, tensor.InsertSliceOp) or (is_generic(op) and len(op.operands) != 2):
        return ()
    return range(len(op.operands)) if isinstance(op, tensor.ConcatOp) else (0,)


def _chosen(op: linalg.ops.GenericOp) -> Sequence[int]:
    """The input and the init of which the body yields the one or the other, untouched: a scatter whose updates replace
    what is there."""
    values, arguments = yielded(op), body_of(op).args
    choice = values[0].owner if len(values) == 1 else None
    if not isinstance(choice, arith.SelectOp) or choice.rhs is not arguments[-1] or choice.lhs not in arguments:
        return ()
    assert isinstance(choice.lhs, BlockArgument)
    untouched = all(len(list(value.uses)) == 1 for value in (*values, choice.lhs, choice.rhs))
    return (choice.lhs.index, len(arguments) - 1) if untouched else ()


def _padding(op: tensor.PadOp, element: Attribute) -> FloatAttr[AnyFloat] | None:
    """The number around a padded tensor as one of `element`; None where it is no constant, or none of those."""
    number = op.region.block.last_op
    owner = number.operands[0].owner if number is not None else None
    if not isinstance(owner, arith.ConstantOp) or not isa(owner.value, FloatAttr):
        return None
    found = scalar_attribute(owner.value.value.data, element)
    return found if isa(found, FloatAttr) and found.value.data == owner.value.value.data else None


def scatters_halves(op: Operation) -> bool:
    """Whether `op` is a scatter of halves whose updates replace what is there."""
    return isinstance(op, linalg.ops.GenericOp) and is_half(result_of(op).type) and bool(_chosen(op))


def kept_narrow(op: linalg.ops.GenericOp, element: Attribute, narrow: Narrow) -> SSAValue:
    """The result of such a scatter, which was widened, made a tensor of `element` again; its readers have not followed
    yet."""
    return _narrowed(result_of(op), element, narrow)


# making it narrow -----------------------------------------------------------------------------------------------------


def _narrowed(value: SSAValue, element: Attribute, narrow: Narrow, *, cut: bool = False) -> SSAValue:
    """`value` narrow. `cut`: slices of it are, too, and what they are cut from is computed."""
    stored = _widened_from(value, element)
    if stored is not None:
        return stored
    assert isinstance(value, OpResult)
    op = value.op
    indices = _moved_operands(op)
    for index in indices:
        operand = operand_of(op, index)
        moved = isinstance(operand.owner, tensor.ExtractSliceOp) if cut else _comes_from(operand, element)
        set_operand(op, index, _narrowed(operand, element, narrow, cut=cut) if moved else narrow(operand, op))
    if isinstance(op, linalg.ops.GenericOp | linalg.ops.TransposeOp | linalg.ops.BroadcastOp):
        _narrow_body(op, indices, element)
    if isinstance(op, tensor.PadOp):
        _narrow_padding(op, element)
    set_type(value, attributes.tensor_type(element, shape_of(value)))
    return value


def _narrow_body(op: Operation, indices: Sequence[int], element: Attribute) -> None:
    """The body of a structured op that yields its input or chooses it, and the init, where that is no part."""
    init = len(op.operands) - 1
    if init not in indices:
        set_operand(op, init, Emitter.before(op).empty_like(operand_of(op, init), element))
    for index in {*indices, init}:
        set_type(body_of(op).args[index], element)
    for value in yielded(op) if is_generic(op) else ():
        set_type(value, element)


def _narrow_padding(op: tensor.PadOp, element: Attribute) -> None:
    value, end = _padding(op, element), op.region.block.last_op
    assert value is not None and end is not None
    constant = Emitter.before(end).add(arith.ConstantOp(value))
    set_operand(end, 0, result_of(constant))
