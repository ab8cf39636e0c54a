"""What onnx-ir cannot read, said otherwise: maps, sparse tensors, and inputs that are outputs as well.

the type of a value that is or holds a map     =>   no type; those of the model's inputs are answered beside the model
sparse initializer, sparse_value of a Constant =>   the dense tensor
a Constant that stands in a graph twice        =>   one of them, as other runtimes take it
an output without sizes that is also an input  =>   the type of the input, which the output's would replace
a node without outputs                         =>   nothing: nobody can read what it does
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import AttributeProto, TypeProto, numpy_helper

from fuseline.frontends.onnx.protos import graphs, nodes


def plain_model(proto: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, TypeProto]]:
    """A model that onnx-ir can read (`proto` itself where nothing has to change) and the types of inputs that it
    cannot."""
    if not _is_special(proto):
        return proto, {}
    out = onnx.ModelProto()
    out.CopyFrom(proto)
    types = {info.name: info.type for info in proto.graph.input if _holds_map(info.type)}
    for graph in graphs(out):
        _complete_outputs(graph)
        for index in sorted((*repeated_constants(graph), *_idle(graph)), reverse=True):
            del graph.node[index]
        _forget_maps(graph)
        graph.initializer.extend(dense_tensor(tensor, tensor.values.name) for tensor in graph.sparse_initializer)
        del graph.sparse_initializer[:]
    for node in nodes(out):
        for attribute in node.attribute:
            _make_dense(attribute)
    return out, types


def _is_special(proto: onnx.ModelProto) -> bool:
    if any(
        next(_vague_outputs(graph), None) is not None or repeated_constants(graph) or _idle(graph)
        for graph in graphs(proto)
    ):
        return True
    if any(graph.sparse_initializer or any(_holds_map(info.type) for info in _infos(graph)) for graph in graphs(proto)):
        return True
    return any(attribute.type == AttributeProto.SPARSE_TENSOR for node in nodes(proto) for attribute in node.attribute)


def _vague_outputs(graph: onnx.GraphProto) -> Iterator[tuple[onnx.ValueInfoProto, TypeProto]]:
    """Outputs that are inputs as well, and say less of their type than those: each with the input's type."""
    inputs = {info.name: info.type for info in graph.input}
    for info in graph.output:
        type_ = inputs.get(info.name)
        if type_ is not None and type_.tensor_type.HasField("shape") and not info.type.tensor_type.HasField("shape"):
            yield info, type_


def _complete_outputs(graph: onnx.GraphProto) -> None:
    for info, type_ in list(_vague_outputs(graph)):
        info.type.CopyFrom(type_)


def repeated_constants(graph: onnx.GraphProto) -> list[int]:
    """The numbers of Constant nodes that say again what one before them says."""
    found: list[int] = []
    constants: dict[str, int] = {}
    for index, node in enumerate(graph.node):
        if node.op_type == "Constant" and len(node.output) == 1:
            first = constants.setdefault(node.output[0], index)
            if first != index and node.attribute == graph.node[first].attribute:
                found.append(index)
    return found


def _idle(graph: onnx.GraphProto) -> list[int]:
    """The numbers of nodes that have no outputs."""
    return [index for index, node in enumerate(graph.node) if not node.output]


def _infos(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    yield from graph.input
    yield from graph.output
    yield from graph.value_info


def _holds_map(type_: TypeProto) -> bool:
    if type_.HasField("sequence_type"):
        return _holds_map(type_.sequence_type.elem_type)
    if type_.HasField("optional_type"):
        return _holds_map(type_.optional_type.elem_type)
    return type_.HasField("map_type")


def _forget_maps(graph: onnx.GraphProto) -> None:
    for info in _infos(graph):
        if _holds_map(info.type):
            info.ClearField("type")


def _make_dense(attribute: AttributeProto) -> None:
    """`sparse_value` of a Constant as its `value`."""
    if attribute.type == AttributeProto.SPARSE_TENSOR:
        dense = dense_tensor(attribute.sparse_tensor, "")
        attribute.ClearField("sparse_tensor")
        attribute.name, attribute.type = "value", AttributeProto.TENSOR
        attribute.t.CopyFrom(dense)


def dense_tensor(tensor: onnx.SparseTensorProto, name: str) -> onnx.TensorProto:
    """A sparse tensor as a dense one, zeros where it has no element. Its indices are flat, or a row of coordinates for
    each element."""
    values, indices = numpy_helper.to_array(tensor.values), numpy_helper.to_array(tensor.indices)
    out = np.zeros(tuple(tensor.dims), values.dtype)
    positions = tuple(indices.T) if indices.ndim == 2 else np.unravel_index(indices, out.shape)
    out[positions] = values
    return numpy_helper.from_array(out, name)
