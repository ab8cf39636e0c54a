"""Comparisons, logic and bits, element by element."""

from __future__ import annotations

import math as pymath
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.emission import BOOL, elementwise
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.elementwise import DType, alike, binary, constant, unary
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.ir.build import Body


@onnx_op("Not")
def logical_not(node: OnnxNode) -> Tensor:
    """Negation of a bool."""
    return unary(node, lambda b, t, x: b.op(arith.XOrIOp, x, b.constant(1, mlir_element(BOOL))))


@onnx_op("BitwiseNot")
def bitwise_not(node: OnnxNode) -> Tensor:
    """All bits flipped."""
    return unary(node, lambda b, t, x: b.op(arith.XOrIOp, x, constant(b, t, -1)))


@onnx_op("IsNaN")
def is_nan(node: OnnxNode) -> Tensor:
    """Whether each element is NaN."""
    x = node[0]
    return elementwise(node, [x], BOOL, lambda b, e: b.op(arith.CmpfOp, e, e, "uno"))


@onnx_op("IsInf")
def is_inf(node: OnnxNode) -> Tensor:
    """Whether each element is infinite, of the wanted signs."""
    x = node[0]
    signs = [sign for name, sign in (("detect_negative", -1), ("detect_positive", 1)) if node.integer(name, 1)]

    def body(b: Body, e: SSAValue) -> SSAValue:
        found = [b.op(arith.CmpfOp, e, constant(b, x.dtype, sign * pymath.inf), "oeq") for sign in signs]
        return (
            found[0] if len(found) == 1 else b.op(arith.OrIOp, *found) if found else b.constant(0, mlir_element(BOOL))
        )

    return elementwise(node, [x], BOOL, body)


for _name, _predicate in {
    "Equal": "eq",
    "Less": "lt",
    "Greater": "gt",
    "LessOrEqual": "le",
    "GreaterOrEqual": "ge",
}.items():

    @onnx_op(_name, since=7)
    def _compare(node: OnnxNode, predicate: str = _predicate) -> Tensor:
        a, c = alike(node, [node[0], node[1]])
        return elementwise(node, [a, c], BOOL, lambda b, x, y: s.compare(b, a.dtype, predicate, x, y))


for _name, _kind in {"And": arith.AndIOp, "Or": arith.OrIOp, "Xor": arith.XOrIOp}.items():
    for _full in (_name, f"Bitwise{_name}"):

        @onnx_op(_full, since=7)
        def _logical(node: OnnxNode, kind: Any = _kind) -> Tensor:
            a, c = node[0], node[1]
            return elementwise(node, [a, c], a.dtype, lambda b, x, y: b.op(kind, x, y))


@onnx_op("BitShift")
def bit_shift(node: OnnxNode) -> Tensor:
    """Shift by a number of bits; by the width or more (or a negative number) nothing of the value is left but, to the
    right, its sign."""
    left = node.text("direction") == "LEFT"

    def body(b: Body, t: DType, x: SSAValue, y: SSAValue) -> SSAValue:
        if not left and t.kind == "i":
            return b.op(arith.ShRSIOp, x, b.op(arith.MinUIOp, y, constant(b, t, t.itemsize * 8 - 1)))
        shifted = b.op(
            arith.ShLIOp if left else arith.ShRUIOp, x, b.op(arith.MinUIOp, y, constant(b, t, t.itemsize * 8 - 1))
        )
        return s.select(b, b.op(arith.CmpiOp, y, constant(b, t, t.itemsize * 8), "ult"), shifted, constant(b, t, 0))

    return binary(node, body)


@onnx_op("Where")
def where(node: OnnxNode) -> Tensor:
    """x where the condition holds, else y."""
    x, y = alike(node, [node[1], node[2]])
    return elementwise(node, [node[0], x, y], x.dtype, s.select)
