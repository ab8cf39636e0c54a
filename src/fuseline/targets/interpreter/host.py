"""Host operators of interpreted programs: the same executors that the runtime uses."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IndexType, StringAttr
from xdsl.dialects.func import FuncOp

from fuseline.errors import FuselineError
from fuseline.ir.flow import HostType
from fuseline.ir.provenance import provenance
from fuseline.runtime import host

HOST_EXECUTOR = "onnx"
"""Who runs operators that name nobody else: what a higher layer registers for ONNX nodes."""


def call_declared(declaration: FuncOp, operands: list[Any]) -> Sequence[Any]:
    """Run the operator that a host declaration names on `operands`; raises E0305 for a declaration without a node, E0503 without onnx."""
    node = declaration.attributes.get("fuseline.onnx_node")
    if not isinstance(node, StringAttr):
        raise FuselineError("E0305", f"@{declaration.sym_name.data} has no fuseline.onnx_node", node=declaration.sym_name.data)
    label = ", ".join(provenance(declaration)) or declaration.sym_name.data
    held = [isinstance(type_, HostType | IndexType) for type_ in declaration.function_type.outputs]
    name = declaration.attributes.get("fuseline.executor")
    executor = name.data if isinstance(name, StringAttr) else HOST_EXECUTOR
    return host.call(host.Call(executor, base64.b64decode(node.data), label, held), operands, ())
