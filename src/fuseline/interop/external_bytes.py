"""How much of a model lies in files beside it."""

from __future__ import annotations

import onnx


def external_bytes(model: onnx.ModelProto) -> int:
    """The bytes of all weights outside of the model's file, by its own account (without reading them)."""
    return sum(_bytes_of(tensor) for tensor in model.graph.initializer if tensor.data_location == tensor.EXTERNAL)


def _bytes_of(tensor: onnx.TensorProto) -> int:
    told = next((entry.value for entry in tensor.external_data if entry.key == "length"), "")
    if told.isdecimal():
        return int(told)
    count = 1
    for size in tensor.dims:
        count *= size
    return count * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
