"""The types of a model's values, as far as ONNX infers them."""

from __future__ import annotations

import onnx
from google.protobuf.message import Error
from onnx import TypeProto, shape_inference

_FAILURES = (shape_inference.InferenceError, onnx.checker.ValidationError, ValueError, RuntimeError, Error)


def value_types(proto: onnx.ModelProto) -> dict[str, TypeProto]:
    """The types of values, as far as ONNX infers them."""
    try:
        graph = shape_inference.infer_shapes(proto).graph
    except _FAILURES:
        graph = proto.graph
    types = {info.name: info.type for info in (*graph.value_info, *graph.input, *graph.output)}
    for tensor in graph.initializer:
        types.setdefault(tensor.name, onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims)))
    return types
