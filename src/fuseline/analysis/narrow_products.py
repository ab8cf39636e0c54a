"""Sums of products of narrow integers."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import IntegerType, f32, i8, i32
from xdsl.ir import BlockArgument, OpResult, SSAValue

from fuseline.analysis.operand_access import Segment, segments
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, is_generic, multiply_add_operands, yielded
from fuseline.ir.build import element_of
from fuseline.ir.dim import Dim
from fuseline.ir.fast.direct import body_of, operand_of, operands_of, ops_of

NARROW_BITS = (8, 16)

BYTE_BITS = (8,)


def multiplies_narrow(op: linalg.ops.GenericOp) -> bool:
    """Whether the body is `out + a * b` in i32, with `a` and `b` inputs of 8 or 16 bits, extended with their sign, or
    of 8 bits without one."""
    if multiply_add_operands(op) is None or element_of(op.results[0]) != i32:
        return False
    (total,) = yielded(op)
    products = [term for term in _operands(total) if type(term) is OpResult and type(term.op) is arith.MuliOp]
    return len(products) == 1 and all(_extends(side) for side in _operands(products[0]))


def paired_steps(
    root: StructuredOp, position: int, shapes: ShapeAnalysis, is_stored: Callable[[SSAValue], bool]
) -> float | None:
    """The share of its steps that a sum of narrow products takes along input `position` as that is stored: a half where
    it meets neighbours in pairs, none of them in the padding alone, more where a last one stands alone, and 1 where
    pairs would have to be laid out first. None for another sum, and for an input that is not stored."""
    if not is_generic(root.op) or not multiplies_narrow(root.op):
        return None
    extents = root.loops(shapes)
    found = segments(shapes, root.inputs[position], root.input_maps[position], extents, is_stored)
    if not found:
        return None
    runs = [
        extents[loop]
        for loop in root.reduction
        if extents[loop] != 1
        and all(segment.access.stride(loop) == 1 and not _is_bounded(segment, loop) for segment in found)
    ]
    return min(map(in_pairs, runs), default=1.0)


def in_pairs(steps: Dim) -> float:
    """The share of so many steps that there are in pairs, a last one alone.

    >>> in_pairs(3), in_pairs(4)
    (0.6666666666666666, 0.5)
    """
    return -(-steps // 2) / steps if isinstance(steps, int) else 0.5


def _is_bounded(segment: Segment, loop: int) -> bool:
    return any(loop in bound.coordinate.terms for bound in segment.access.bounds)


def widens_weights(op: linalg.ops.GenericOp) -> bool:
    """Whether the body is `out + a * b` in f32, with one input of f32 and the other of 8 bits, converted with its
    sign."""
    if multiply_add_operands(op) is None or element_of(op.results[0]) != f32:
        return False
    (total,) = yielded(op)
    products = [term for term in _operands(total) if type(term) is OpResult and type(term.op) is arith.MulfOp]
    sides = _operands(products[0]) if len(products) == 1 else ()
    converted = [side for side in sides if type(side) is OpResult and type(side.op) is arith.SIToFPOp]
    plain = [side for side in sides if isinstance(side, BlockArgument)]
    return len(converted) == len(plain) == 1 and operand_of(converted[0].op, 0).type == i8


def _operands(value: SSAValue) -> tuple[SSAValue, ...]:
    return tuple(operands_of(value.op)) if type(value) is OpResult else ()


def unsigned_inputs(op: linalg.ops.GenericOp) -> frozenset[int]:
    """The inputs of a sum of products of narrow integers that are extended without a sign."""
    inner = ops_of(body_of(op))
    sources = [operand_of(one, 0) for one in inner if type(one) is arith.ExtUIOp]
    return frozenset(source.index for source in sources if isinstance(source, BlockArgument))


def _extends(value: SSAValue) -> bool:
    if type(value) is not OpResult or type(value.op) not in (arith.ExtSIOp, arith.ExtUIOp):
        return False
    source = operand_of(value.op, 0)
    bits = NARROW_BITS if type(value.op) is arith.ExtSIOp else BYTE_BITS
    return isinstance(source, BlockArgument) and isinstance(source.type, IntegerType) and source.type.width.data in bits
