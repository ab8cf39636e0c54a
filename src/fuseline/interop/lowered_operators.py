"""Operators that `onnx.reference` lacks or has wrong, answered by this compiler's own lowering: the node is read as a
model of its own, sizes known, and what its lowering emits is evaluated in NumPy.

Importing this module imports onnx.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import onnx
from onnx import helper, numpy_helper
from onnx.reference.op_run import OpRun
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from fuseline.evaluation.program import evaluate_module
from fuseline.frontends.onnx import read_onnx
from fuseline.frontends.onnx.reference import LOWERED, evaluator_with
from fuseline.frontends.onnx.reference.corrections import Node
from fuseline.ir.context import CompilerContext, new_context
from fuseline.passes.registry import make_pass

PROGRAMS_KEPT = 256
"""Programs that are kept ready, for nodes that run again and again; the least recently used goes first."""


class _Lowered(Node):
    def _run(self, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        node = onnx.NodeProto()
        node.CopyFrom(self.onnx_node)
        node.input[:] = ["" if x is None else f"@i{i}" for i, x in enumerate(inputs)]
        found = iter(_evaluated(node, inputs, self.run_params["opsets"]))
        return tuple(next(found) if name else None for name in node.output)


def _evaluated(node: onnx.NodeProto, inputs: Sequence[Any], opsets: dict[str, int]) -> list[Any]:
    """The outputs of `node`. Integers are part of the program: axes and the like decide its shapes."""
    given = {f"@i{i}": x for i, x in enumerate(inputs) if x is not None}
    constants = {name: x for name, x in given.items() if x.dtype.kind in "iu" and x.ndim < 2}
    operands = {name: x for name, x in given.items() if name not in constants}
    graph = helper.make_graph(
        [node],
        "node",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in operands.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in node.output if name],
        [numpy_helper.from_array(x, name) for name, x in constants.items()],
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    ctx, module = _program(helper.make_model(graph, opset_imports=imports).SerializeToString())
    return evaluate_module(module, list(operands.values()), ctx.resources, host_call=_on_the_host)


def _on_the_host(declaration: FuncOp, operands: list[Any]) -> list[Any]:
    """What of a lowering runs on the host: labels that are strings are looked up there."""
    node = declaration.attributes["fuseline.onnx_node"]
    assert isinstance(node, StringAttr)
    model = onnx.load_model_from_string(base64.b64decode(node.data))
    feeds = {value.name: operand for value, operand in zip(model.graph.input, operands, strict=True)}
    answers: Any = evaluator_with(LOWERED_OPERATORS, model).run(None, feeds)
    return list(answers)


@lru_cache(maxsize=PROGRAMS_KEPT)
def _program(model: bytes) -> tuple[CompilerContext, ModuleOp]:
    """The program of a model of one node. Raises NotImplementedError for a node that its lowering does not take."""
    ctx = new_context()
    ctx.evaluated = True
    module = read_onnx(model, ctx)
    op_type = onnx.load_model_from_string(model).graph.node[0].op_type
    for call in ctx.records.host_ops:
        if call.op_type == op_type:
            raise NotImplementedError(call.reason)
    make_pass("compute-halves-in-f32").apply(ctx, module)
    return ctx, module


LOWERED_OPERATORS: tuple[type[OpRun], ...] = tuple(
    type(op_type, (_Lowered,), {"op_domain": domain}) for domain, op_type in sorted(LOWERED)
)
"""What to give `ReferenceEvaluator` as `new_ops`."""
