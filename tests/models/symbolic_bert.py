"""A static BERT-like export rewritten to symbolic batch and sequence, equal to the original at the exported sizes.

What an exporter bakes in for a static shape is undone in the graph: Reshape targets copy their leading sizes (0), position ids, masks over
queries and the coordinates of mask gathers are cut or computed from the shape of the inputs. onnxruntime runs the result at any size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

BATCH, SEQUENCE = "batch", "seq"


def make_symbolic(model: onnx.ModelProto, *, batch: int = 1, sequence: int = 128) -> onnx.ModelProto:
    """A copy of `model` (inputs `batch x sequence`) with both sizes symbolic. Raises ValueError for a constant it does not understand."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    graph = out.graph
    _name_sizes(graph, batch, sequence)
    del graph.value_info[:]
    shapes = _reshape_targets(graph)
    extra: list[onnx.NodeProto] = _size_nodes(graph.input[0].name)
    for tensor in list(graph.initializer):
        array = numpy_helper.to_array(tensor)
        if tensor.name in shapes:
            tensor.CopyFrom(numpy_helper.from_array(_copying(array, batch, sequence), tensor.name))
            continue
        rewrite = _rewrite_of(array, sequence)
        if rewrite is not None:
            graph.initializer.remove(tensor)
            extra += rewrite(tensor.name, array, graph)
    for node in graph.node:
        _copy_zero(node, shapes)
    nodes = [*extra, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(out)
    return out


def _name_sizes(graph: onnx.GraphProto, batch: int, sequence: int) -> None:
    for value in (*graph.input, *graph.output):
        for dim, size, name in zip(value.type.tensor_type.shape.dim, (batch, sequence), (BATCH, SEQUENCE), strict=False):
            if dim.dim_value != size:
                raise ValueError(f"{value.name} is not {batch}x{sequence}")
            dim.dim_param = name


def _reshape_targets(graph: onnx.GraphProto) -> set[str]:
    return {node.input[1] for node in graph.node if node.op_type == "Reshape"}


def _copying(target: NDArray[np.int64], batch: int, sequence: int) -> NDArray[np.int64]:
    """`[1, 128, -1, 32]` as `[0, 0, -1, 32]`."""
    if target.size < 2 or target[0] != batch or target[1] != sequence:
        raise ValueError(f"a reshape to {target.tolist()}")
    return np.concatenate([np.zeros(2, np.int64), target[2:]])


def _copy_zero(node: onnx.NodeProto, shapes: set[str]) -> None:
    if node.op_type == "Reshape" and node.input[1] in shapes:
        kept = [attribute for attribute in node.attribute if attribute.name != "allowzero"]
        del node.attribute[:]
        node.attribute.extend(kept)


Rewrite = Callable[[str, NDArray[np.generic], onnx.GraphProto], list[onnx.NodeProto]]


def _rewrite_of(array: NDArray[np.generic], sequence: int) -> Rewrite | None:
    if array.dtype == np.int64 and array.shape == (1, sequence):
        return _cut_positions
    if array.dtype == np.bool_ and array.shape == (1, 1, sequence, 1):
        return _cut_mask
    if array.dtype == np.int64 and array.shape == (1, 1, 1, sequence, 2):
        return _computed_coordinates
    return None


def _size_nodes(source: str) -> list[onnx.NodeProto]:
    """`sym_batch` and `sym_seq`, vectors of one size each, and scalars for Range."""
    return [
        helper.make_node("Shape", [source], ["sym_batch"], name="sym_batch", start=0, end=1),
        helper.make_node("Shape", [source], ["sym_seq"], name="sym_seq", start=1, end=2),
        helper.make_node("Squeeze", ["sym_batch"], ["sym_batch_0d"], name="sym_batch_0d"),
        helper.make_node("Squeeze", ["sym_seq"], ["sym_seq_0d"], name="sym_seq_0d"),
        _int64("sym_zero", [0]),
        _int64("sym_zero_0d", 0),
        _int64("sym_one_0d", 1),
        _int64("sym_axis1", [1]),
        _int64("sym_axis2", [2]),
    ]


def _int64(name: str, value: int | list[int]) -> onnx.NodeProto:
    tensor = numpy_helper.from_array(np.asarray(value, np.int64), name)
    return helper.make_node("Constant", [], [name], name=name, value=tensor)


def _kept(name: str, array: NDArray[np.generic], graph: onnx.GraphProto) -> str:
    graph.initializer.append(numpy_helper.from_array(np.asarray(array), f"{name}_all"))
    return f"{name}_all"


def _cut_positions(name: str, array: NDArray[np.generic], graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    longest = np.arange(512, dtype=np.int64)[None]
    if not np.array_equal(array, longest[:, : array.shape[1]]):
        raise ValueError(f"{name} counts no positions")
    return [helper.make_node("Slice", [_kept(name, longest, graph), "sym_zero", "sym_seq", "sym_axis1"], [name], name=f"{name}_cut")]


def _cut_mask(name: str, array: NDArray[np.generic], graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    longest = np.ones((1, 1, 512, 1), bool)
    if not array.all():
        raise ValueError(f"{name} masks something")
    return [helper.make_node("Slice", [_kept(name, longest, graph), "sym_zero", "sym_seq", "sym_axis2"], [name], name=f"{name}_cut")]


def _computed_coordinates(name: str, array: NDArray[np.generic], graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Coordinates `(row, column)` of a `batch x seq` mask, as `batch x 1 x 1 x seq x 2`."""
    expected = np.stack([np.zeros(array.shape[3], np.int64), np.arange(array.shape[3])], -1)
    if not np.array_equal(array[0, 0, 0], expected):
        raise ValueError(f"{name} is no grid of coordinates")
    for key, shape in (("rows", [-1, 1, 1, 1, 1]), ("columns", [1, 1, 1, -1, 1])):
        graph.initializer.append(numpy_helper.from_array(np.asarray(shape, np.int64), f"{name}_{key}_shape"))
    graph.initializer.append(numpy_helper.from_array(np.ones(1, np.int64), f"{name}_ones"))
    ones = f"{name}_ones"
    nodes = [
        helper.make_node("Range", ["sym_zero_0d", "sym_batch_0d", "sym_one_0d"], [f"{name}_r"], name=f"{name}_r"),
        helper.make_node("Range", ["sym_zero_0d", "sym_seq_0d", "sym_one_0d"], [f"{name}_c"], name=f"{name}_c"),
        helper.make_node("Reshape", [f"{name}_r", f"{name}_rows_shape"], [f"{name}_rr"], name=f"{name}_rr"),
        helper.make_node("Reshape", [f"{name}_c", f"{name}_columns_shape"], [f"{name}_cc"], name=f"{name}_cc"),
        helper.make_node("Concat", ["sym_batch", ones, ones, "sym_seq", ones], [f"{name}_to"], name=f"{name}_to", axis=0),
        helper.make_node("Expand", [f"{name}_rr", f"{name}_to"], [f"{name}_re"], name=f"{name}_re"),
        helper.make_node("Expand", [f"{name}_cc", f"{name}_to"], [f"{name}_ce"], name=f"{name}_ce"),
        helper.make_node("Concat", [f"{name}_re", f"{name}_ce"], [name], name=f"{name}_grid", axis=4),
    ]
    return nodes


__all__ = ["BATCH", "SEQUENCE", "make_symbolic"]
