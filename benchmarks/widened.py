"""A model computed in float64 throughout: the yardstick for rounding errors of ours and of any peer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

_TYPE_ATTRIBUTES = frozenset({"to", "dtype", "output_dtype", "stash_type", "softmax_precision"})
"""Integer attributes that hold an element type."""


def in_float64(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of `model` with every float32 input, weight, cast and result in float64; other types stay, float16
    included, for their rounding is the model's own. Weights must be loaded (no external data). Shapes are kept."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    _widen_graph(out.graph)
    for function in out.functions:
        _widen_nodes(function.node)
    return out


def _widen_graph(graph: GraphProto) -> None:
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for sparse in graph.sparse_initializer:
        _widen_tensor(sparse.values)
    for value in (*graph.input, *graph.output, *graph.value_info):
        for tensor_type in _tensor_types(value.type):
            if tensor_type.elem_type == TensorProto.FLOAT:
                tensor_type.elem_type = TensorProto.DOUBLE
    _widen_nodes(graph.node)


def _tensor_types(type_: TypeProto) -> Iterator[TypeProto.Tensor]:
    if type_.HasField("tensor_type"):
        yield type_.tensor_type
    elif type_.HasField("sequence_type"):
        yield from _tensor_types(type_.sequence_type.elem_type)
    elif type_.HasField("optional_type"):
        yield from _tensor_types(type_.optional_type.elem_type)


def _widen_nodes(nodes: Iterable[NodeProto]) -> None:
    for node in nodes:
        for attribute in node.attribute:
            _widen_attribute(node, attribute)
        if node.op_type == "Constant":
            _widen_constant(node)
        if node.op_type == "ConstantOfShape" and not node.attribute:  # float32 zeros by default
            node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(1))))


def _widen_attribute(node: NodeProto, attribute: AttributeProto) -> None:
    for graph in (attribute.g, *attribute.graphs):
        _widen_graph(graph)
    for tensor in (attribute.t, *attribute.tensors):
        _widen_tensor(tensor)
    if attribute.name in _TYPE_ATTRIBUTES and attribute.i == TensorProto.FLOAT:
        attribute.i = TensorProto.DOUBLE


def _widen_constant(node: NodeProto) -> None:
    """`value_float` and `value_floats` are float32 by definition: a tensor says the same in float64."""
    for attribute in node.attribute:
        if attribute.name in ("value_float", "value_floats"):
            scalar = attribute.name == "value_float"
            array = np.array(attribute.f if scalar else list(attribute.floats), np.float64)
            attribute.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(array)))


def _widen_tensor(tensor: TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), name))
