"""Elementwise ops that only centre and scale what is stored in 8 bits: `(x - zero_point) * scale`, or without the
scale."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, f32, i32
from xdsl.ir import Attribute, BlockArgument, OpResult, SSAValue

from fuseline.analysis.indexing_maps import is_permutation
from fuseline.analysis.structured import StructuredOp, yielded
from fuseline.ir.build import element_of
from fuseline.ir.fast.direct import operand_of

Range = tuple[int, int]

STORED_BITS = 8
"""Differences of two such numbers fit 16 bits with room to spare."""


@dataclass(frozen=True)
class StoredIntegers:
    """What `op` makes: `integer` (a value of its body, in `range`) times `scale` (an input's element, a number, or
    None: nothing)."""

    op: linalg.ops.GenericOp
    integer: SSAValue
    range: Range
    scale: BlockArgument | float | None


def stored_integers(op: linalg.ops.GenericOp) -> StoredIntegers | None:
    """How `op` computes its only result, in f32 or i32, from integers of 8 bits; None where it does anything else."""
    view = StructuredOp(op)
    if (
        len(op.results) != 1
        or view.reduction
        or not is_permutation(view.output_maps[0])
        or element_of(op.results[0]) not in (f32, i32)
    ):
        return None
    (value,) = yielded(op)
    scale: BlockArgument | float | None = None
    if element_of(op.results[0]) == f32:
        scaled = _scaled(value)
        if scaled is None:
            return None
        value, scale = scaled
    found = _range(value)
    return StoredIntegers(op, value, found, scale) if found is not None else None


def refused_integers(op: linalg.ops.GenericOp) -> tuple[str, str] | None:
    """Why an op that scales integers is none of `stored_integers`, as a code (`qdq-type`, `qdq-scale`) and a detail;
    None where it scales none."""
    factors = _integer_times(yielded(op)[0]) if len(op.results) == 1 else None
    if factors is None or stored_integers(op) is not None:
        return None
    integer, scale = factors
    if _factor(scale) is None:
        return "qdq-scale", (f"the scale is neither an f32 number nor an f32 tensor, but {scale.type}")
    return "qdq-type", (f"integers of more than {STORED_BITS} bits, computed in {integer.type}")


def _integer_times(value: SSAValue) -> tuple[SSAValue, SSAValue] | None:
    """The integer and the factor of a product with something converted to float, either way round."""
    if type(value) is not OpResult or type(value.op) is not arith.MulfOp:
        return None
    for number, scale in ((0, 1), (1, 0)):
        converted = operand_of(value.op, number)
        if type(converted) is OpResult and isinstance(converted.op, arith.SIToFPOp | arith.UIToFPOp):
            return operand_of(converted.op, 0), operand_of(value.op, scale)
    return None


def _scaled(value: SSAValue) -> tuple[SSAValue, BlockArgument | float] | None:
    """`sitofp(integer) * scale`, either way round."""
    if type(value) is not OpResult or type(value.op) is not arith.MulfOp:
        return None
    for number, scale in ((0, 1), (1, 0)):
        converted, factor = operand_of(value.op, number), _factor(operand_of(value.op, scale))
        if factor is not None and type(converted) is OpResult and type(converted.op) is arith.SIToFPOp:
            return operand_of(converted.op, 0), factor
    return None


def _factor(value: SSAValue) -> BlockArgument | float | None:
    if isinstance(value, BlockArgument):
        return value if value.type == f32 else None
    constant = constant_of(value)
    return float(constant.value.data) if isinstance(constant, FloatAttr) else None


def constant_of(value: SSAValue) -> Attribute | None:
    """The attribute of a constant."""
    return value.op.value if type(value) is OpResult and type(value.op) is arith.ConstantOp else None


def _range(value: SSAValue) -> Range | None:
    """The smallest and the largest that an integer of a body can be, where it is a difference of what is stored."""
    constant = constant_of(value)
    if isinstance(constant, IntegerAttr):
        return constant.value.data, constant.value.data
    if type(value) is not OpResult:
        return None
    if type(value.op) is arith.SubiOp:
        a, b = (_range(operand_of(value.op, i)) for i in (0, 1))
        found = (a[0] - b[1], a[1] - b[0]) if a is not None and b is not None else None
        return found if found is not None and -(2**15) < found[0] and found[1] < 2**15 else None
    return _extended(value.op) if isinstance(value.op, arith.ExtSIOp | arith.ExtUIOp) else None


def _extended(op: arith.ExtSIOp | arith.ExtUIOp) -> Range | None:
    source = operand_of(op, 0)
    signed = isinstance(op, arith.ExtSIOp)
    if not isinstance(source.type, IntegerType) or not 1 < source.type.width.data <= STORED_BITS:
        return None
    constant = constant_of(source)
    if isinstance(constant, IntegerAttr):
        number = constant.value.data if signed else constant.value.data % (1 << source.type.width.data)
        return number, number
    half = 1 << (source.type.width.data - 1)
    return ((-half, half - 1) if signed else (0, 2 * half - 1)) if isinstance(source, BlockArgument) else None
