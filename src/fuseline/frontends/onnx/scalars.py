"""Scalar arithmetic for bodies, picked by the ONNX element type (the IR's integers have no sign)."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from fuseline.frontends.onnx.dtypes import is_float, is_half, is_unsigned, mlir_element
from fuseline.ir.build import Body
from fuseline.ir.halves import mark_storage
from fuseline.ir.scalar_ops import RemFOp

DType = np.dtype[Any]
INDEX = IndexType()


def _pick(b: Body, dtype: DType, x: SSAValue, y: SSAValue, floating: Any, signed: Any, unsigned: Any) -> SSAValue:
    if is_float(dtype):
        return b.op(floating, x, y)
    return b.op(unsigned if is_unsigned(dtype) else signed, x, y)


def add(b: Body, dtype: DType, x: SSAValue, y: SSAValue) -> SSAValue:
    """`x + y`."""
    return _pick(b, dtype, x, y, arith.AddfOp, arith.AddiOp, arith.AddiOp)


def add_float(b: Body, element: SSAValue, accumulator: SSAValue) -> SSAValue:
    """`accumulator + element`: the body of a sum of floats."""
    return b.op(arith.AddfOp, accumulator, element)


def sub(b: Body, dtype: DType, x: SSAValue, y: SSAValue) -> SSAValue:
    """`x - y`."""
    return _pick(b, dtype, x, y, arith.SubfOp, arith.SubiOp, arith.SubiOp)


def mul(b: Body, dtype: DType, x: SSAValue, y: SSAValue) -> SSAValue:
    """`x * y`."""
    return _pick(b, dtype, x, y, arith.MulfOp, arith.MuliOp, arith.MuliOp)


def div(b: Body, dtype: DType, x: SSAValue, y: SSAValue) -> SSAValue:
    """`x / y`; integers truncate, and a zero divisor is read as one (ONNX leaves it undefined, the machine would
    trap)."""
    if not is_float(dtype):
        y = _nonzero(b, dtype, y)
    return _pick(b, dtype, x, y, arith.DivfOp, arith.DivSIOp, arith.DivUIOp)


def rem(b: Body, dtype: DType, x: SSAValue, y: SSAValue) -> SSAValue:
    """The remainder with the sign of the dividend; an integer zero as divisor is read as one."""
    if is_float(dtype):
        return b.op(RemFOp, x, y)
    return b.op(arith.RemUIOp if is_unsigned(dtype) else arith.RemSIOp, x, _nonzero(b, dtype, y))


def _nonzero(b: Body, dtype: DType, y: SSAValue) -> SSAValue:
    owner = y.owner
    if isinstance(owner, arith.ConstantOp):
        return y
    element = mlir_element(dtype)
    zero = b.op(arith.CmpiOp, y, b.constant(0, element), "eq")
    return b.op(arith.SelectOp, zero, b.constant(1, element), y)


def maximum(b: Body, dtype: DType, x: SSAValue, y: SSAValue) -> SSAValue:
    """The larger; NaN if either is."""
    return _pick(b, dtype, x, y, arith.MaximumfOp, arith.MaxSIOp, arith.MaxUIOp)


def minimum(b: Body, dtype: DType, x: SSAValue, y: SSAValue) -> SSAValue:
    """The smaller; NaN if either is."""
    return _pick(b, dtype, x, y, arith.MinimumfOp, arith.MinSIOp, arith.MinUIOp)


_SIGNED = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_UNSIGNED = {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}
_FLOAT = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


def compare(b: Body, dtype: DType, predicate: str, x: SSAValue, y: SSAValue) -> SSAValue:
    """`x <predicate> y` as i1; predicates `eq ne lt le gt ge`, false for NaN but `ne`."""
    if is_float(dtype):
        return b.op(arith.CmpfOp, x, y, _FLOAT[predicate])
    return b.op(arith.CmpiOp, x, y, (_UNSIGNED if is_unsigned(dtype) else _SIGNED)[predicate])


def select(b: Body, condition: SSAValue, x: SSAValue, y: SSAValue) -> SSAValue:
    """`x` where the condition holds, else `y`."""
    return b.op(arith.SelectOp, condition, x, y)


def convert(b: Body, x: SSAValue, source: DType, target: DType, *, asked: bool = False) -> SSAValue:
    """A value of `source` as `target`: floats to integers truncate, to bool compare with zero, integers wrap.

    `asked`: the model asks for it, so that a narrowing to 16-bit floats is one of its steps and not only how the value
    is stored.
    """
    if source == target:
        return x
    if target.kind == "b":
        return compare(b, source, "ne", x, b.constant(0, mlir_element(source)))
    element = mlir_element(target)
    if is_float(source):
        value = _from_float(b, x, source, target)
        if not asked and is_half(target) and isinstance(value.owner, arith.TruncFOp):
            mark_storage(value.owner)
        return value
    if is_float(target):
        return b.op(arith.UIToFPOp if is_unsigned(source) else arith.SIToFPOp, x, element)
    return _integer_to_integer(b, x, source, target)


def _from_float(b: Body, x: SSAValue, source: DType, target: DType) -> SSAValue:
    element = mlir_element(target)
    if not is_float(target):
        return _float_to_integer(b, x, target)
    if target.itemsize > source.itemsize:
        return b.op(arith.ExtFOp, x, element)
    if target.itemsize < source.itemsize:
        return b.op(arith.TruncFOp, x, element)
    return b.op(arith.TruncFOp, b.op(arith.ExtFOp, x, mlir_element(np.dtype(np.float32))), element)


def _float_to_integer(b: Body, x: SSAValue, target: DType) -> SSAValue:
    """Through i32 for narrow types, so that values between the signed and the unsigned range wrap as in C."""
    if target.itemsize < 4:
        wide = b.op(arith.FPToSIOp, x, mlir_element(np.dtype(np.int32)))
        return b.op(arith.TruncIOp, wide, mlir_element(target))
    return b.op(arith.FPToUIOp if is_unsigned(target) else arith.FPToSIOp, x, mlir_element(target))


def _integer_to_integer(b: Body, x: SSAValue, source: DType, target: DType) -> SSAValue:
    source_bits = 1 if source.kind == "b" else source.itemsize * 8
    target_bits = target.itemsize * 8
    if target_bits == source_bits:
        return x
    if target_bits < source_bits:
        return b.op(arith.TruncIOp, x, mlir_element(target))
    return b.op(arith.ExtUIOp if is_unsigned(source) else arith.ExtSIOp, x, mlir_element(target))


def as_index(b: Body, x: SSAValue) -> SSAValue:
    """A signed integer as an index."""
    return b.op(arith.IndexCastOp, x, INDEX)


def index_constant(b: Body, value: int) -> SSAValue:
    """An index constant inside the body."""
    return b.constant(value, INDEX)


def loop_index(b: Body, loop: int) -> SSAValue:
    """The counter of a loop."""
    from xdsl.dialects.linalg.ops import IndexOp

    return b.op(IndexOp, loop)


def round_half_even(b: Body, x: SSAValue) -> SSAValue:
    """To the nearest integer, ties to even."""
    return b.op(math.RoundEvenOp, x)
