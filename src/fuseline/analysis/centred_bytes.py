"""Elementwise ops that only widen what is stored in 8 bits and add a number to it: `x - zero_point`, in 16 bits."""

from __future__ import annotations

from dataclasses import dataclass

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
class CentredBytes:
    """Each element of the result of `op` is one of its input without a sign (where it is stored with one, `signed`:
    `SIGN` more than it is stored as) plus `offset`."""

    op: linalg.ops.GenericOp
    signed: bool
    offset: int

    @property
    def source(self) -> SSAValue:
        """The bytes as they are stored."""
        return operand_of(self.op, 0)

    @property
    def in_place(self) -> bool:
        """Whether the elements are in the places of the bytes."""
        view = StructuredOp(self.op)
        return view.input_maps[0] == view.output_maps[0]


def centred_bytes(op: Operation | None) -> CentredBytes | None:
    """What `op` computes, in 16 bits; None where it is anything else, or its results may wrap."""
    if not is_generic(op) or len(op.results) != 1 or len(op.inputs) != 1 or element_of(op.results[0]) != i16:
        return None
    view = StructuredOp(op)
    if element_of(op.inputs[0]) != i8 or not all(map(is_permutation, view.maps)):
        return None
    found = _sum(yielded(op)[0])
    if found is None or abs(found[1]) > BYTE:
        return None
    signed, offset = found
    return CentredBytes(op, signed, offset - SIGN if signed else offset)


def _sum(value: SSAValue) -> tuple[bool, int] | None:
    """Whether an input is extended with its sign, and what is added to it."""
    if type(value) is not OpResult:
        return None
    op = value.op
    if type(op) is arith.TruncIOp:
        return _sum(operand_of(op, 0))
    if isinstance(op, arith.ExtSIOp | arith.ExtUIOp):
        source = operand_of(op, 0)
        return (type(op) is arith.ExtSIOp, 0) if isinstance(source, BlockArgument) and source.type == i8 else None
    if not isinstance(op, arith.AddiOp | arith.SubiOp):
        return None
    found, number = _sum(operand_of(op, 0)), constant_of(operand_of(op, 1))
    if found is None or not isinstance(number, IntegerAttr):
        return None
    more = number.value.data
    return found[0], found[1] + (more if type(op) is arith.AddiOp else -more)
