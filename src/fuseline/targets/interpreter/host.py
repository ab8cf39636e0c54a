"""Host operators of interpreted programs: the same executors that the runtime uses."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

from fuseline.errors import FuselineError
from fuseline.runtime.host import executor

Array = NDArray[Any]

HOST_EXECUTOR = "onnx"
"""Name under which a higher layer registers what runs ONNX nodes."""


def call_declared(declaration: FuncOp, operands: list[Array]) -> Sequence[Array]:
    """Run the operator that a host declaration names on `operands`; raises E0305 for a declaration without a node, E0503 without onnx."""
    node = declaration.attributes.get("fuseline.onnx_node")
    if not isinstance(node, StringAttr):
        raise FuselineError("E0305", f"@{declaration.sym_name.data} has no fuseline.onnx_node", node=declaration.sym_name.data)
    return call_node(base64.b64decode(node.data), operands)


def call_node(node: bytes, operands: Sequence[Array]) -> Sequence[Array]:
    """Run a serialised ONNX node."""
    return [np.asarray(result) for result in executor(HOST_EXECUTOR)(node, operands)]
