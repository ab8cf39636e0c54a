"""Work and traffic of ops, for tables and for weighing merges: operations and bytes, as `Dim`s."""

from __future__ import annotations

from xdsl.dialects import math
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, body_ops, is_generic
from fuseline.ir.dim import Dim, mul, product

TRANSCENDENTAL_OPS = 10
"""Arithmetic operations that one exp, tanh, erf or the like counts for: the length of its polynomial."""


def flops(op: Operation, shapes: ShapeAnalysis) -> Dim:
    """Arithmetic operations of a structured op (a multiply-add is two); 0 for anything that only moves data."""
    return mul(product(StructuredOp(op).loops(shapes)), operations(op)) if is_generic(op) else 0


def operations(op: Operation) -> int:
    """Arithmetic operations per point of a structured op; 0 for anything that only moves data."""
    return sum(_weight(inner) for inner in body_ops(op)) if is_generic(op) else 0


def _weight(op: Operation) -> int:
    if op.name.startswith("tensor.") or op.name in ("linalg.index", "arith.index_cast"):
        return 0
    cheap = isinstance(op, math.AbsFOp | math.SqrtOp | math.FloorOp | math.CeilOp | math.RoundEvenOp | math.FmaOp)
    return TRANSCENDENTAL_OPS if op.name.startswith("math.") and not cheap else 1


def num_bytes(value: SSAValue, shapes: ShapeAnalysis) -> Dim:
    """The size of a tensor in bytes (one byte for i1, eight for index); 0 for a scalar."""
    if not isinstance(value.type, TensorType):
        return 0
    width = getattr(value.type.get_element_type(), "bitwidth", 64)
    return mul(product(shapes.dims(value)), max(1, int(width) // 8))
