"""Trigonometric and hyperbolic functions that have no short formula: one op of the math dialect each."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import math

from fuseline.frontends.onnx import scalars
from fuseline.frontends.onnx.dtypes import is_half
from fuseline.frontends.onnx.emission import FLOAT32, elementwise
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import Tensor


def _register(op_type: str, kind: Any) -> None:
    @onnx_op(op_type)
    def lower(node: OnnxNode) -> Tensor:
        x = node[0]
        inner = FLOAT32 if is_half(x.dtype) else x.dtype
        return elementwise(
            node,
            [x],
            x.dtype,
            lambda b, p: scalars.convert(b, b.op(kind, scalars.convert(b, p, x.dtype, inner)), inner, x.dtype),
        )


for _name, _kind in (
    ("Sinh", math.SinhOp),
    ("Cosh", math.CoshOp),
    ("Asin", math.AsinOp),
    ("Acos", math.AcosOp),
    ("Atan", math.AtanOp),
    ("Asinh", math.AsinhOp),
    ("Acosh", math.AcoshOp),
    ("Atanh", math.AtanhOp),
):
    _register(_name, _kind)
