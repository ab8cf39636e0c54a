"""What the weights of a model take in its files."""

from __future__ import annotations

import onnx_ir as ir


def weight_bytes(model: ir.Model) -> int:
    """Bytes of all initializers, those of subgraphs too; several that name one place in a file of external data count
    once, and strings, which no kernel reads, not at all."""
    found: dict[object, int] = {}
    for graph in model.graphs():
        for value in graph.initializers.values():
            tensor = value.const_value
            if tensor is not None and tensor.dtype != ir.DataType.STRING:
                found[_position(tensor)] = tensor.nbytes
    return sum(found.values())


def _position(tensor: ir.TensorProtocol) -> object:
    if isinstance(tensor, ir.ExternalTensor):
        return tensor.location, tensor.offset or 0, tensor.nbytes
    return id(tensor)
