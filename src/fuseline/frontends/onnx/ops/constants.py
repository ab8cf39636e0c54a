"""Constants, and what is known of sizes while reading."""

from __future__ import annotations

import numpy as np

from fuseline.frontends.onnx.dtypes import from_onnx
from fuseline.frontends.onnx.emission import broadcast_to
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, known_sizes
from fuseline.ir.dim import product


@onnx_op("Constant")
def constant(node: OnnxNode) -> Tensor:
    """A tensor, or numbers, given as an attribute."""
    if node.has("value"):
        return known(np.asarray(node.attributes["value"].as_tensor().numpy()), name=node.label)
    for name, dtype in (("value_float", np.float32), ("value_floats", np.float32), ("value_int", np.int64), ("value_ints", np.int64)):
        if node.has(name):
            return known(np.asarray(node.attributes[name].value, dtype), name=node.label)
    raise NoNativeLowering("unsupported-constant", ", ".join(node.attributes))


@onnx_op("Shape")
def shape(node: OnnxNode) -> Tensor:
    """The sizes of the input, from `start` to `end`."""
    dims = node[0].dims
    return known_sizes(dims[slice(node.integer("start", 0), node.integer("end", len(dims)) if node.has("end") else None)])


@onnx_op("Size")
def size(node: OnnxNode) -> Tensor:
    """How many elements the input has."""
    out = known_sizes([product(node[0].dims)])
    assert out.array is not None
    return Tensor(out.dtype, (), array=out.array.reshape(()))


@onnx_op("ConstantOfShape")
def constant_of_shape(node: OnnxNode) -> Tensor:
    """One value everywhere."""
    value = np.asarray(node.attributes["value"].as_tensor().numpy()).reshape(()) if node.has("value") else np.float32(0).reshape(())
    dims = node[0].sizes()
    if all(isinstance(dim, int) for dim in dims) and int(str(product(dims))) <= 1024:
        return known(np.full([int(str(dim)) for dim in dims], value, value.dtype))
    return broadcast_to(known(np.asarray(value)), dims)


@onnx_op("Range")
def range_of(node: OnnxNode) -> Tensor:
    """Evenly spaced numbers, where the ends are known."""
    start, limit, delta = (node[i].numbers().reshape(()) for i in range(3))
    return known(np.arange(start, limit, delta, dtype=start.dtype))


@onnx_op("EyeLike")
def eye_like(node: OnnxNode) -> Tensor:
    """Ones on a diagonal."""
    import onnx_ir as ir

    rows, columns = (int(str(dim)) for dim in node[0].dims)
    dtype = from_onnx(ir.DataType(node.integer("dtype"))) if node.has("dtype") else node[0].dtype
    return known(np.eye(rows, columns, node.integer("k"), dtype=dtype))


@onnx_op("Dropout")
def dropout(node: OnnxNode) -> list[Tensor]:
    """Inference: the input itself, and a mask that keeps everything."""
    training = node.get(2)
    if training is not None and bool(training.numbers().any()):
        raise NoNativeLowering("training", "training_mode is set")
    return [node[0], broadcast_to(known(np.ones((), bool)), node[0].dims)]
