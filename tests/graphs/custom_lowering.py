"""Models in which nodes of the domain `test` are lowered by a function of the test: what helpers of lowerings emit, run
by the interpreter.

    computed("(float[3] x) => (y) { y = test.Op (x) }", lambda node: elementwise(node, [node[0]], F32, body), x)
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import onnx
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from fuseline.evaluation import evaluate_module
from fuseline.frontends.onnx import importer, read_onnx
from fuseline.frontends.onnx.registry import Lowering, lowering_of
from fuseline.interop import onnx_host
from fuseline.ir.context import CompilerContext, new_context
from fuseline.targets.interpreter.host import call_declared
from tests.graphs.onnx_text import onnx_model

Array = NDArray[Any]
onnx_host.install()


def read_with(
    model: onnx.ModelProto | str, lowering: Lowering, *, shapes: Any = None, **weights: Any
) -> tuple[ModuleOp, CompilerContext]:
    """The verified module of a model, or of its text with `weights`. Raises what reading raises."""

    def found(domain: str, op_type: str, version: int) -> Lowering | None:
        return lowering if domain == "test" else lowering_of(domain, op_type, version)

    proto = onnx_model(model, weights) if isinstance(model, str) else model
    ctx = new_context()
    with mock.patch.object(importer, "lowering_of", found):
        module = read_onnx(proto, ctx, shapes=shapes or {})
    module.verify()
    return module, ctx


def computed(
    model: onnx.ModelProto | str, lowering: Lowering, *feeds: Any, shapes: Any = None, **weights: Any
) -> list[Array]:
    """The outputs for `feeds`."""
    module, ctx = read_with(model, lowering, shapes=shapes, **weights)
    return evaluate_module(module, [np.asarray(feed) for feed in feeds], ctx.resources, host_call=call_declared)
