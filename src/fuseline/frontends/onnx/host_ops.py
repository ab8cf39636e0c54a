"""Operators without a native lowering: calls that run through onnx.reference at run time, counted and named in the records."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper, numpy_helper
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Region, SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dtypes import from_onnx, holds, is_unsigned, mlir_element, to_onnx
from fuseline.frontends.onnx.function_bodies import node_proto
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.program import Program
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import tensor_type
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim, to_name
from fuseline.report.records import HostOpRecord


class HostOps:
    """Makes host calls; `declarations` are the functions they call."""

    def __init__(self, program: Program, ctx: CompilerContext) -> None:
        self.program, self.ctx = program, ctx
        self.declarations: list[FuncOp] = []

    def call(self, node: OnnxNode, domain: str, version: int, refusal: NoNativeLowering) -> list[Tensor | None]:
        """The outputs of `node`, computed on the host. Raises E0106 where their types cannot be known before the run."""
        captured = captured_values(node)
        model = single_node_model(node, domain, version, captured)
        outputs = _outputs(node, model)
        operands = [node.ssa(t) for t in (*node.present(), *captured.values())]
        types = [tensor_type(mlir_element(dtype), dims) for dtype, dims in outputs]
        name = f"host.{node.op_type}.{len(self.declarations)}"
        self.declarations.append(_declaration(name, node, model, operands, types, outputs, list(captured.values())))
        call = node.emit.add(CallOp(name, operands, types))
        call.attributes["fuseline.dims"] = ArrayAttr([ArrayAttr([StringAttr(to_name(dim)) for dim in dims]) for _, dims in outputs])
        results = call.res
        for (_, dims), value in zip(outputs, results, strict=True):
            self.program.bind_symbols(value, dims)
        reason = f"{refusal.reason}: {refusal.detail}" if refusal.detail else refusal.reason
        record = HostOpRecord(node=node.label, op_type=node.op_type, reason=reason)
        self.ctx.records.host_ops.append(record)
        return [Tensor(dtype, dims, value=value) for (dtype, dims), value in zip(outputs, results, strict=True)]


def captured_values(node: OnnxNode) -> dict[str, Tensor]:
    """Values around the node that its subgraphs read, by name."""
    names: dict[str, None] = {}
    for attribute in node.attributes.values():
        for graph in _graphs_of(attribute):
            _collect(graph, set(), names)
    return {name: node.scope[name] for name in names if name in node.scope}


def _graphs_of(attribute: ir.Attr) -> list[ir.Graph]:
    if attribute.type == ir.AttributeType.GRAPH:
        return [attribute.as_graph()]
    return list(attribute.as_graphs()) if attribute.type == ir.AttributeType.GRAPHS else []


def _collect(graph: ir.Graph, outer: set[str], names: dict[str, None]) -> None:
    local = outer | {str(v.name) for v in graph.inputs} | set(graph.initializers)
    for inner in graph:
        names.update({str(v.name): None for v in inner.inputs if v is not None and str(v.name) not in local})
        for attribute in inner.attributes.values():
            for nested in _graphs_of(attribute):
                _collect(nested, local, names)
        local |= {str(v.name) for v in inner.outputs}
    names.update({str(v.name): None for v in graph.outputs if str(v.name) not in local})


def single_node_model(node: OnnxNode, domain: str, version: int, captured: Mapping[str, Tensor] | None = None) -> onnx.ModelProto:
    """A model with this node alone; inputs are called i0, i1, .. (left-out ones stay empty), outputs o0, o1, ..

    Captured values follow the node's inputs under their own names.
    """
    proto = node_proto(node)
    if proto.op_type == "Scatter":  # its old name, which onnx.reference does not know
        proto.op_type, version = "ScatterElements", 11
    proto.input[:] = ["" if t is None else f"i{i}" for i, t in enumerate(node.inputs)]
    proto.output[:] = [f"o{i}" for i in range(node.output_count)]
    inputs = [_value_info(f"i{i}", t) for i, t in enumerate(node.inputs) if t is not None]
    inputs += [_value_info(name, t) for name, t in (captured or {}).items()]
    outputs = [onnx.ValueInfoProto(name=f"o{i}") for i in range(node.output_count)]
    graph = helper.make_graph([proto], "host", inputs, outputs, [])
    for i, t in enumerate(node.inputs):
        if t is not None and t.is_constant and t.numbers().size <= 1024:
            graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(t.numbers()).reshape(t.numbers().shape), f"i{i}"))
    if proto.op_type == "Loop" and not proto.input[1]:  # onnx.reference takes a missing condition for false
        proto.input[1] = "always"
        graph.node[0].input[1] = "always"
        graph.initializer.append(numpy_helper.from_array(np.asarray(True), "always"))
    opsets = [helper.make_opsetid(domain, version)] + ([helper.make_opsetid("", 18)] if domain else [])
    return helper.make_model(graph, opset_imports=opsets)


def _value_info(name: str, t: Tensor) -> onnx.ValueInfoProto:
    dims = [dim if isinstance(dim, int) else None for dim in t.dims]
    return helper.make_tensor_value_info(name, int(to_onnx(t.dtype)), dims)


def _outputs(node: OnnxNode, model: onnx.ModelProto) -> list[tuple[np.dtype[np.generic], tuple[Dim, ...]]]:
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        inferred = model
    by_name = {info.name: info for info in inferred.graph.output}
    return [_type_of_output(node, by_name[f"o{i}"], i) for i in range(node.output_count)]


def _type_of_output(node: OnnxNode, info: onnx.ValueInfoProto, index: int) -> tuple[np.dtype[np.generic], tuple[Dim, ...]]:
    """The type of an output as inferred, else as declared; sizes that only the run tells become new symbols.

    Raises:
        FuselineError: E0106, it is no tensor of numbers; E0107, its rank is unknown.
    """
    tensor = info.type.tensor_type
    value = node.source.outputs[index]
    dtype = ir.DataType(tensor.elem_type) if info.type.HasField("tensor_type") else value.dtype
    if dtype is None or not holds(dtype):
        raise FuselineError("E0106", f"{node.op_type} gives a value that is no tensor of numbers", node=node.label, hint="remove the operator")
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim] if tensor.HasField("shape") else None
    declared = _declared(node, index)
    if sizes is None or (None in sizes and declared is not None and None not in declared and len(declared) == len(sizes)):
        sizes = declared
    if sizes is None:
        message = f"the rank of an output of {node.op_type} is only known when it runs"
        raise FuselineError("E0107", message, node=node.label, hint="declare the types of the model's intermediate values")
    stem = str(value.name) or node.label
    dims = [node.program.fresh_symbol(f"{stem}_{axis}", lo=0) if size is None else size for axis, size in enumerate(sizes)]
    return from_onnx(dtype), tuple(dims)


def _declared(node: OnnxNode, index: int) -> list[int | None] | None:
    """The sizes that the model itself declares for an output."""
    shape = node.source.outputs[index].shape
    if shape is None:
        return _declared_by_body(node, index)
    return [size if isinstance(size, int) else None for size in shape]


def _declared_by_body(node: OnnxNode, index: int) -> list[int | None] | None:
    """The sizes that a loop's body declares: of a state, or of one step of what the loop collects."""
    if node.op_type != "Loop":
        return None
    shape = node.attributes["body"].as_graph().outputs[index + 1].shape
    if shape is None:
        return None
    sizes = [size if isinstance(size, int) else None for size in shape]
    return sizes if index < len(node.inputs) - 2 else [None, *sizes]


def _declaration(
    name: str,
    node: OnnxNode,
    model: onnx.ModelProto,
    operands: Sequence[SSAValue],
    types: Sequence[Attribute],
    outputs: Sequence[tuple[np.dtype[np.generic], tuple[Dim, ...]]],
    captured: Sequence[Tensor],
) -> FuncOp:
    arguments = ArrayAttr([_dtype_attribute(t.dtype) for t in (*node.present(), *captured)])
    results = ArrayAttr([_dtype_attribute(dtype) for dtype, _ in outputs])
    function = FuncOp(name, ([value.type for value in operands], list(types)), Region(), "private", arg_attrs=arguments, res_attrs=results)
    function.attributes["fuseline.host_op"] = StringAttr(node.op_type)
    function.attributes["fuseline.onnx_node"] = StringAttr(base64.b64encode(model.SerializeToString()).decode())
    return function


def _dtype_attribute(dtype: np.dtype[np.generic]) -> DictionaryAttr:
    return DictionaryAttr({"fuseline.dtype": StringAttr(dtype.name)} if is_unsigned(dtype) and dtype.kind != "b" else {})
