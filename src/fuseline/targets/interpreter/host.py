"""Host operators of interpreted programs: the same executors that the runtime uses."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from fuseline import executors
from fuseline.errors import FuselineError
from fuseline.ir.element_types import numpy_dtype
from fuseline.ir.flow import HostType
from fuseline.ir.operand_code import code_of
from fuseline.ir.provenance import node_names
from fuseline.runtime import host
from fuseline.runtime.scalar_arithmetic import operands_of


def call_declared(declaration: FuncOp, operands: list[Any]) -> Sequence[Any]:
    """Run the operator that a host declaration names on `operands`; raises E0305 for a declaration without a node,
    E0503 without onnx."""
    node = declaration.attributes.get("fuseline.onnx_node")
    if not isinstance(node, StringAttr):
        raise FuselineError(
            "E0305", f"@{declaration.sym_name.data} has no fuseline.onnx_node", node=declaration.sym_name.data
        )
    types = declaration.function_type.inputs
    operands = _given(declaration, [_declared(operand, type_) for operand, type_ in zip(operands, types, strict=True)])
    label = node_names(declaration) or declaration.sym_name.data
    boxed = [isinstance(type_, HostType | IndexType) for type_ in declaration.function_type.outputs]
    name = declaration.attributes.get("fuseline.executor")
    executor = name.data if isinstance(name, StringAttr) else executors.ONNX
    return host.call(host.Call(executor, base64.b64decode(node.data), label, boxed), operands, ())


def _given(declaration: FuncOp, operands: list[Any]) -> list[Any]:
    """What the operator gets: the operands, or what its declaration computes of them."""
    code = code_of(declaration)
    if code is None:
        return operands
    is_size = [isinstance(type_, IndexType) for type_ in declaration.function_type.inputs]
    tensors, sizes = (
        [x for x, index in zip(operands, is_size, strict=True) if index == want] for want in (False, True)
    )
    return operands_of(code, tensors, sizes)


def _declared(operand: Any, type_: Attribute) -> Any:
    """An operand in the type that the operator was declared for: a program interpreted in float64 has others."""
    if (
        not isinstance(type_, TensorType)
        or not isinstance(operand, np.ndarray | np.generic)
        or operand.dtype.kind != "f"
    ):
        return operand
    return operand.astype(numpy_dtype(type_.get_element_type()), copy=False)
