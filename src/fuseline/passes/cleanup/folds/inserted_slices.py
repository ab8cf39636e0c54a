"""Inserts that say a pad or a concat, as lowered programs write them.

    fill of 0 <── insert x at [1, 1]                    =>      pad x by 1, 1 with 0
    empty <── insert a at 0 <── insert b at 16          =>      concat of a and b         where together they are all

So they are read in place, or their parts are written where they belong, as those that came as pads and concats are.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from fuseline.analysis.structured import producer_of, splat_value
from fuseline.ir.build import element_of, shape_of
from fuseline.ir.fast.create import create_concat, create_pad
from fuseline.passes.cleanup.folds.dims import asked, size_value
from fuseline.passes.cleanup.folds.worklist import Worklist


@dataclass(frozen=True)
class _Part:
    """What an insert writes: `size` elements from `start` on along one axis, and all of every other dimension."""

    value: SSAValue
    start: int
    size: int


def fold_covering_inserts(op: tensor.InsertSliceOp, work: Worklist) -> bool:
    """The last of a chain of inserts that together write everything, side by side along one dimension."""
    if _is_inserted_into(op.result):
        return False
    chain = _chain(op)
    for axis, size in enumerate(shape_of(op.result)):
        parts = [_part(one, axis) for one in chain]
        known = sorted((part for part in parts if part is not None), key=lambda part: part.start)
        if size != DYNAMIC_INDEX and len(known) == len(chain) > 1 and _covers(known, size):
            work.replace(op, [create_concat([part.value for part in known], axis, op.result.type, op.location)])  # pyright: ignore[reportArgumentType]
            return True
    return False


def fold_insert_into_fill(op: tensor.InsertSliceOp, work: Worklist) -> bool:
    """An insert into a tensor that is one number everywhere, read by no other insert."""
    if _is_inserted_into(op.result) or not _is_static(op):
        return False
    scalar = _scalar(op.dest)
    if scalar is None:
        return False
    low = list(op.static_offsets.get_values())
    ends = [offset + size for offset, size in zip(low, op.static_sizes.get_values(), strict=True)]
    high = [whole - end for whole, end in zip(shape_of(op.dest), ends, strict=True)]
    if min((*low, *high), default=0) < 0:
        return False  # out of bounds, which is said elsewhere
    value, new = scalar
    work.replace(op, [*new, create_pad(op.source, low, high, value, op.result.type, op.location)])  # pyright: ignore[reportArgumentType]
    return True


def _is_inserted_into(value: SSAValue) -> bool:
    return any(isinstance(use.operation, tensor.InsertSliceOp) and use.operation.dest is value for use in value.uses)


def _is_static(op: tensor.InsertSliceOp) -> bool:
    """Whether numbers say where an insert of neighbouring elements, of all dimensions, goes."""
    numbers = (*op.static_offsets.get_values(), *op.static_sizes.get_values(), *shape_of(op.dest))
    return DYNAMIC_INDEX not in numbers and _is_plain(op)


def _is_plain(op: tensor.InsertSliceOp) -> bool:
    same_rank = len(shape_of(op.source)) == len(shape_of(op.dest))
    return same_rank and set(op.static_strides.get_values()) <= {1}


def _scalar(value: SSAValue) -> tuple[SSAValue, list[Operation]] | None:
    """The number that every element of a tensor is, and the ops that it takes to have it."""
    made = producer_of(value)
    if type(made) is linalg.ops.FillOp:
        return made.inputs[0], []
    number, element = splat_value(value), element_of(value)
    attribute = None if number is None else _number(number, element)
    if attribute is None:
        return None
    constant = arith.ConstantOp(attribute)
    return constant.result, [constant]


def _number(number: float, element: Attribute) -> FloatAttr[AnyFloat] | IntegerAttr[IntegerType] | None:
    if isinstance(element, AnyFloat):
        return FloatAttr(float(number), element)
    return IntegerAttr(int(number), element) if isinstance(element, IntegerType) else None


def _chain(op: tensor.InsertSliceOp) -> list[tensor.InsertSliceOp]:
    """The inserts that the tensor went through, the last one first."""
    chain, value = [op], op.dest
    while type(value) is OpResult and isinstance(value.op, tensor.InsertSliceOp):
        chain.append(value.op)
        value = value.op.dest
    return chain


def _part(op: tensor.InsertSliceOp, axis: int) -> _Part | None:
    """What an insert writes where it writes all of every dimension but `axis`; None otherwise."""
    starts, sizes = op.static_offsets.get_values(), op.static_sizes.get_values()
    whole = [_takes_all(op, i) for i in range(len(sizes)) if i != axis]
    if not _is_plain(op) or not all(whole) or DYNAMIC_INDEX in (starts[axis], sizes[axis]):
        return None
    return _Part(op.source, starts[axis], sizes[axis])


def _takes_all(op: tensor.InsertSliceOp, axis: int) -> bool:
    size, whole = op.static_sizes.get_values()[axis], shape_of(op.dest)[axis]
    if op.static_offsets.get_values()[axis] != 0 or (size == DYNAMIC_INDEX) != (whole == DYNAMIC_INDEX):
        return False
    if size != DYNAMIC_INDEX:
        return size == whole
    number = [i for i, known in enumerate(op.static_sizes.get_values()) if known == DYNAMIC_INDEX].index(axis)
    return asked(op.sizes[number]) == size_value(op.dest, axis)


def _covers(parts: list[_Part], size: int) -> bool:
    """Whether parts in order meet end to start, from 0 to `size`."""
    ends = [part.start + part.size for part in parts]
    return [part.start for part in parts] == [0, *ends[:-1]] and ends[-1] == size
