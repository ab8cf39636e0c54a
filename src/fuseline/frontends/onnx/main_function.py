"""`@main` of an imported model: its block closed with the outputs, and what its nodes left behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Region

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.host_ops import HostOps, border_attributes
from fuseline.frontends.onnx.host_values import HostValue, Value
from fuseline.frontends.onnx.main_arguments import with_dtype
from fuseline.ir.build import Emitter
from fuseline.ir.provenance import provenance
from fuseline.report.records import CompileRecord


def main_function(
    graph: ir.Graph, scope: Mapping[str, Value], host: HostOps, arguments: Sequence[Mapping[str, Attribute]]
) -> FuncOp:
    """The function that returns the outputs of `graph`, out of `scope`; `arguments` are the attributes of its own.
    Raises FuselineError (E0105) for an output that nothing defines."""
    block = host.program.block
    emitter = Emitter.at_end(block)
    missing = [str(value.name) for value in graph.outputs if str(value.name) not in scope]
    if missing:
        raise FuselineError("E0105", f"nothing defines the output {missing[0]!r}", node=missing[0])
    outputs = [(str(value.name), scope[str(value.name)]) for value in graph.outputs]
    values = [host.ssa(value, emitter) for _, value in outputs]
    emitter.add(ReturnOp(*values))
    results = ArrayAttr([DictionaryAttr(_result_attributes(name, value)) for name, value in outputs])
    types = ([argument.type for argument in block.args], [value.type for value in values])
    said = ArrayAttr([DictionaryAttr(attributes) for attributes in arguments])
    return FuncOp("main", types, Region(block), arg_attrs=said, res_attrs=results)


def _result_attributes(name: str, value: Value) -> dict[str, Attribute]:
    if isinstance(value, HostValue):
        return border_attributes(value, name)
    return with_dtype({"fuseline.name": StringAttr(name)}, value.dtype)


def record_eliminated(records: CompileRecord, main: FuncOp) -> None:
    """Note the nodes that left no op behind: shape arithmetic, views, constants."""
    present = {node for op in main.body.block.ops for node in provenance(op)}
    for node in records.source_nodes:
        if node not in present:
            records.eliminated.setdefault(node, "read-onnx")
