"""Elementwise ops that only widen what is stored in 8 bits and add a number to it: `x - zero_point`, in 16 bits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import IntegerAttr, i8, i16
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from fuseline.analysis.indexing_maps import is_permutation
from fuseline.analysis.stored_integers import constant_of
from fuseline.analysis.structured import StructuredOp, is_generic, yielded
from fuseline.ir.build import element_of
from fuseline.ir.fast.direct import operand_of

BYTE = 1 << 8
SIGN = BYTE // 2


@dataclass(frozen=True)
class Offset:
    """A number, less one that only the run knows: the only element of `zero`, a tensor of a byte (`signed`: with a
    sign)."""

    number: int
    zero: SSAValue | None = None
    signed: bool = False


@dataclass(frozen=True)
class CentredBytes:
    """Each element of the result of `op` is one of its input `position` without a sign (where it is stored with one,
    `signed`: `SIGN` more than it is stored as) plus `offset`."""

    op: linalg.ops.GenericOp
    position: int
    signed: bool
    offset: Offset

    @property
    def source(self) -> SSAValue:
        """The bytes as they are stored."""
        return operand_of(self.op, self.position)

    @property
    def in_place(self) -> bool:
        """Whether the elements are in the places of the bytes."""
        view = StructuredOp(self.op)
        return view.input_maps[self.position] == view.output_maps[0]


def centred_bytes(op: Operation | None) -> CentredBytes | None:
    """What `op` computes, in 16 bits; None where it is anything else, or its results may wrap."""
    if not is_generic(op) or len(op.results) != 1 or element_of(op.results[0]) != i16:
        return None
    found, view = _sum(yielded(op)[0]), StructuredOp(op)
    if found is None or found.element.index >= view.input_count or abs(found.number) > BYTE:
        return None
    if not all(map(is_permutation, (view.input_maps[found.element.index], view.output_maps[0]))):
        return None
    offset = Offset(found.number - SIGN if found.signed else found.number)
    if found.zero is not None:
        number, signed = found.zero
        if number.index == found.element.index or view.input_maps[number.index].results:
            return None
        offset = replace(offset, zero=view.inputs[number.index], signed=signed)
    return CentredBytes(op, found.element.index, found.signed, offset)


@dataclass(frozen=True)
class _Sum:
    """An input of 8 bits, with its sign or without, plus a number, less another input."""

    element: BlockArgument
    signed: bool
    number: int = 0
    zero: tuple[BlockArgument, bool] | None = None


def _sum(value: SSAValue) -> _Sum | None:
    if type(value) is not OpResult:
        return None
    op = value.op
    if type(op) is arith.TruncIOp:
        return _sum(operand_of(op, 0))
    if isinstance(op, arith.ExtSIOp | arith.ExtUIOp):
        source = operand_of(op, 0)
        is_byte = isinstance(source, BlockArgument) and source.type == i8
        return _Sum(source, type(op) is arith.ExtSIOp) if is_byte and isinstance(source, BlockArgument) else None
    if not isinstance(op, arith.AddiOp | arith.SubiOp):
        return None
    found, other = _sum(operand_of(op, 0)), operand_of(op, 1)
    number = constant_of(other)
    if found is not None and isinstance(number, IntegerAttr):
        more = number.value.data
        return replace(found, number=found.number + (more if type(op) is arith.AddiOp else -more))
    less = _sum(other) if type(op) is arith.SubiOp else None
    if found is None or found.zero is not None or less is None or less.number or less.zero is not None:
        return None
    return replace(found, zero=(less.element, less.signed))
