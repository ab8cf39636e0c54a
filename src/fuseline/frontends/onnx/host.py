"""Host ops: nodes without a native lowering, called through `onnx.reference` at run time, counted and named in every report."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import CallOp, FuncOp

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import dtypes
from fuseline.frontends.onnx.functions import bound_proto
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import tensor_type
from fuseline.ir.dim import Dim, to_text


def emit_call(node: OnnxNode, reason: NoNativeLowering) -> Sequence[Tensor | None]:
    """A call that runs the node on the host.

    Raises:
        FuselineError: E0106, its inputs or outputs cannot be tensors of the IR; E0107, the rank of an output is unknown.
    """
    captured = _captured_values(node)
    names, tensors = _operands(node, captured)
    model = _model_of(node, names, tensors)
    outputs = _output_types(node, model, tensors)
    for name, _ in outputs:
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    call = _emit(node, model, tensors, [t for _, t in outputs])
    for (_, t), value in zip(outputs, call.res, strict=True):
        t.value = value
        node.program.bind_symbols(value, t.dims)
    made = dict(outputs)
    del reason
    return [made.get(str(value.name)) for value in node.source.outputs]


def _captured_values(node: OnnxNode) -> list[ir.Value]:
    """Values of enclosing graphs that the node's subgraphs read."""
    found: dict[ir.Value, None] = {}
    for attribute in node.attributes.values():
        for graph in _graphs_in(attribute):
            _collect_captured(graph, set(), found)
    return list(found)


def _graphs_in(attribute: ir.Attr) -> list[ir.Graph]:
    if attribute.type == ir.AttributeType.GRAPH:
        return [attribute.as_graph()]
    return list(attribute.as_graphs()) if attribute.type == ir.AttributeType.GRAPHS else []


def _collect_captured(graph: ir.Graph, outer: set[ir.Value], found: dict[ir.Value, None]) -> None:
    local = outer | set(graph.inputs) | set(graph.initializers.values())
    for inner in graph:
        for value in inner.inputs:
            if value is not None and value not in local:
                found[value] = None
        for attribute in inner.attributes.values():
            for nested in _graphs_in(attribute):
                _collect_captured(nested, local, found)
        local |= set(inner.outputs)
    for value in graph.outputs:
        if value not in local:
            found[value] = None


def _operands(node: OnnxNode, captured: Sequence[ir.Value]) -> tuple[list[str], list[Tensor]]:
    pairs: dict[str, Tensor] = {}
    for value, t in zip(node.source.inputs, node.inputs, strict=True):
        if value is not None and t is not None:
            pairs.setdefault(str(value.name), t)
    for value in captured:
        t = node.importer.lookup(value)
        if t is not None:
            pairs.setdefault(str(value.name), t)
    for name, t in pairs.items():
        if not _holdable(t.dtype):
            raise FuselineError("E0106", f"{node.op_type} reads {name!r} of type {t.dtype}, which tensors here cannot hold", node=node.label)
    return list(pairs), list(pairs.values())


def _holdable(dtype: np.dtype[Any]) -> bool:
    return dtypes.holds(dtypes.to_onnx(dtype))


def _model_of(node: OnnxNode, names: Sequence[str], tensors: Sequence[Tensor]) -> onnx.ModelProto:
    inputs = [
        onnx.helper.make_tensor_value_info(name, dtypes.to_onnx(t.dtype).value, [d if isinstance(d, int) else to_text(d) for d in t.dims])
        for name, t in zip(names, tensors, strict=True)
    ]
    opsets = dict(node.importer.loaded.opsets)
    opsets[node.source.domain] = node.opset
    graph = onnx.helper.make_graph([bound_proto(node)], node.op_type, inputs, [])
    functions = [ir.serde.serialize_function(f) for f in node.importer.loaded.model.functions.values()]
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return onnx.helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=10)


def _output_types(node: OnnxNode, model: onnx.ModelProto, tensors: Sequence[Tensor]) -> list[tuple[str, Tensor]]:
    """Names and types of the outputs that exist: as declared in the model, else as inferred by ONNX."""
    inferred = _inferred(model, tensors)
    out: list[tuple[str, Tensor]] = []
    for value in node.source.outputs:
        if not value.name:
            continue
        out.append((value.name, _output(node, value, inferred.get(value.name))))
    return out


def _inferred(model: onnx.ModelProto, tensors: Sequence[Tensor]) -> dict[str, onnx.TypeProto]:
    trial = onnx.ModelProto()
    trial.CopyFrom(model)
    for info, t in zip(model.graph.input, tensors, strict=True):
        if t.is_constant and t.array is not None and t.array.size <= 4096:
            trial.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(t.array), info.name))
    for name in trial.graph.node[0].output:
        if name:
            trial.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    try:
        done = onnx.shape_inference.infer_shapes(trial, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError):
        return {}
    return {info.name: info.type for info in (*done.graph.output, *done.graph.value_info)}


def _output(node: OnnxNode, value: ir.Value, inferred: onnx.TypeProto | None) -> Tensor:
    declared = isinstance(value.type, ir.TensorType) and value.shape is not None
    found = inferred.tensor_type if inferred is not None and inferred.HasField("tensor_type") else None
    if found is not None and found.elem_type and found.HasField("shape"):
        dtype, sizes = ir.DataType(found.elem_type), [_size(d) for d in found.shape.dim]
    elif declared and value.type is not None and value.shape is not None:
        dtype, sizes = value.type.dtype, [d if isinstance(d, int) else None for d in value.shape]
    else:
        other = inferred is not None and inferred.WhichOneof("value") not in (None, "tensor_type")
        code, what = ("E0106", "is no tensor") if other else ("E0107", "has a rank that only running it tells")
        raise FuselineError(code, f"output {value.name!r} of {node.op_type} {what}", node=node.label, hint="run onnx.shape_inference on the model")
    if not dtypes.holds(dtype):
        raise FuselineError("E0106", f"{node.op_type} makes {dtype.name} elements, which tensors here cannot hold", node=node.label)
    dims = [_dim(node, size, axis, value) for axis, size in enumerate(sizes)]
    return Tensor(dtypes.from_onnx(dtype), tuple(dims), name=str(value.name))


def _size(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dim.HasField("dim_value"):
        return dim.dim_value
    return dim.dim_param or None


def _dim(node: OnnxNode, size: int | str | None, axis: int, value: ir.Value) -> Dim:
    if isinstance(size, int):
        return size
    if size is not None and size in node.program.ctx.symbols:
        return node.program.ctx.symbols[size]
    return node.program.fresh_symbol(f"{value.name}_{axis}", lo=0)


def _emit(node: OnnxNode, model: onnx.ModelProto, tensors: Sequence[Tensor], results: Sequence[Tensor]) -> CallOp:
    symbol = f"host.{node.op_type}.{len(node.importer.host_declarations)}"
    operands = [node.ssa(t) for t in tensors]
    types = [tensor_type(dtypes.mlir_element(t.dtype), t.dims) for t in results]
    declaration = FuncOp.external(symbol, [value.type for value in operands], types)
    declaration.sym_visibility = StringAttr("private")
    declaration.attributes["fuseline.host_op"] = StringAttr(node.op_type)
    declaration.attributes["fuseline.onnx_node"] = StringAttr(base64.b64encode(model.SerializeToString()).decode())
    node.importer.host_declarations.append(declaration)
    call = node.emit.add(CallOp(symbol, operands, types))
    call.attributes["fuseline.dims"] = ArrayAttr([ArrayAttr([StringAttr(to_text(d)) for d in t.dims]) for t in results])
    return call


def run(data: bytes, inputs: Sequence[NDArray[Any] | None]) -> list[NDArray[Any]]:
    """Execute the model of a host op (`fuseline.onnx_node`, decoded) on its operands with `onnx.reference`.

    Signless integers are viewed as the unsigned ones that the model declares.
    """
    from onnx.reference import ReferenceEvaluator

    model = onnx.ModelProto()
    model.ParseFromString(data)
    feeds: dict[str, NDArray[Any]] = {}
    for info, array in zip(model.graph.input, inputs, strict=True):
        if array is not None:
            dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type))
            feeds[info.name] = array.view(dtype) if array.dtype != dtype and array.dtype.itemsize == dtype.itemsize else array.astype(dtype, copy=False)
    found = ReferenceEvaluator(model).run(None, feeds)
    return [np.asarray(value) for value in found]
