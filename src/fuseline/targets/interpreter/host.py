"""Host operators of interpreted programs: the same executors that the runtime uses."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

from fuseline.errors import FuselineError
from fuseline.runtime.host import executor

HOST_EXECUTOR = "onnx"
"""Name under which a higher layer registers what runs ONNX nodes."""


def call_declared(declaration: FuncOp, operands: list[Any]) -> Sequence[Any]:
    """Run the operator that a host declaration names on `operands`; raises E0305 for a declaration without a node, E0503 without onnx."""
    node = declaration.attributes.get("fuseline.onnx_node")
    if not isinstance(node, StringAttr):
        raise FuselineError("E0305", f"@{declaration.sym_name.data} has no fuseline.onnx_node", node=declaration.sym_name.data)
    return call_node(base64.b64decode(node.data), operands)


def call_node(node: bytes, operands: Sequence[Any]) -> Sequence[Any]:
    """Run a serialised ONNX node on arrays and held values."""
    return executor(HOST_EXECUTOR)(node, operands)
