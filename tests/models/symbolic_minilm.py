"""A static BERT-like skeleton with batch and sequence made symbolic, as an exporter with dynamic axes writes it.

onnxruntime runs the result at any size, and at the original sizes it equals the original: the test checks both.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

BATCH, SEQUENCE = "batch", "sequence"


def make_symbolic(model: onnx.ModelProto, batch: int = 1, sequence: int = 128) -> onnx.ModelProto:
    """`model` with inputs `[batch, sequence]` free: target shapes copy sizes (0), positions are sliced, the mask is
    broadcast."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    graph = out.graph
    for value in (*graph.input, *graph.output):
        _free(value, batch, sequence)
    del graph.value_info[:]
    constants = {tensor.name: tensor for tensor in graph.initializer}
    inferred = onnx.shape_inference.infer_shapes(model)
    shapes = {
        v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in (*inferred.graph.value_info, *inferred.graph.output)
    }
    for node in graph.node:
        if node.op_type == "Reshape":
            _copy_sizes(constants[node.input[1]], shapes[node.output[0]], batch, sequence)
            del node.attribute[:]  # allowzero would make the copied sizes empty ones
    _slice_positions(graph, constants, sequence)
    _broadcast_mask(graph, constants)
    onnx.checker.check_model(out)
    return out


def _free(value: onnx.ValueInfoProto, batch: int, sequence: int) -> None:
    for dim, size, name in zip(
        value.type.tensor_type.shape.dim[:2], (batch, sequence), (BATCH, SEQUENCE), strict=False
    ):
        if dim.dim_value == size:
            dim.dim_param = name


def _copy_sizes(tensor: onnx.TensorProto, shape: list[int], batch: int, sequence: int) -> None:
    """`0, 0` for the leading sizes; a -1 elsewhere becomes the number it stood for, since only one may be inferred."""
    target = numpy_helper.to_array(tensor)
    if target.shape[0] >= 2 and tuple(target[:2]) == (batch, sequence):
        tensor.CopyFrom(numpy_helper.from_array(np.array([0, 0, *shape[2:]], np.int64), tensor.name))


def _slice_positions(graph: onnx.GraphProto, constants: dict[str, onnx.TensorProto], sequence: int) -> None:
    """The constant position ids `[1, sequence]` become a slice of all positions up to the sequence's length."""
    for at, node in enumerate(graph.node):
        ids = constants.get(node.input[1]) if node.op_type == "Gather" else None
        if ids is None or list(ids.dims) != [1, sequence]:
            continue
        rows = constants[node.input[0]].dims[0]
        graph.initializer.append(numpy_helper.from_array(np.arange(rows, dtype=np.int64)[None], "all_positions"))
        for name, number in (("p_one", 1), ("p_two", 2), ("p_zero", 0)):
            graph.initializer.append(numpy_helper.from_array(np.array([number], np.int64), name))
        new = [
            helper.make_node("Shape", [graph.input[0].name], ["p_shape"], "position_shape"),
            helper.make_node("Slice", ["p_shape", "p_one", "p_two"], ["p_length"], "position_length"),
            helper.make_node("Slice", ["all_positions", "p_zero", "p_length", "p_one"], ["p_ids"], "position_slice"),
        ]
        node.input[1] = "p_ids"
        for offset, item in enumerate(new):
            graph.node.insert(at + offset, item)
        return


def _broadcast_mask(graph: onnx.GraphProto, constants: dict[str, onnx.TensorProto]) -> None:
    """A gather of the mask at every position becomes the mask with two unit axes; the constant mask it is combined with
    is all true."""
    for at, node in enumerate(graph.node):
        if node.op_type != "GatherND":
            continue
        graph.initializer.append(numpy_helper.from_array(np.array([1, 2], np.int64), "mask_axes"))
        graph.node[at].CopyFrom(
            helper.make_node("Unsqueeze", [node.input[0], "mask_axes"], list(node.output), node.name)
        )
        for user in graph.node:
            others = [name for name in user.input if name != node.output[0]]
            if user.op_type == "And" and node.output[0] in user.input:
                assert numpy_helper.to_array(constants[others[0]]).all()
                user.CopyFrom(helper.make_node("Identity", [node.output[0]], list(user.output), user.name))
        return
