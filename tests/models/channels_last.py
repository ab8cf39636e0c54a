"""Rewrites a static channels-first network into the style of a tf2onnx export: every image is channels-last, a
Transpose stands around each operator that wants channels first, and activations run on reshapes through unit
dimensions, `[1, h, w, c] -> [h, w, 1, c]`.

The result computes the same with its input and output channels-last.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import helper, numpy_helper

TO_FIRST, TO_LAST = [0, 3, 1, 2], [0, 2, 3, 1]
_WRAPPED = {"Conv", "GlobalAveragePool", "Resize"}
_ACTIVATIONS = {"Relu", "Clip", "HardSwish"}


def to_tensorflow_style(model: onnx.ModelProto) -> onnx.ModelProto:
    """The rewritten model. Raises KeyError for an operator on images that it does not know."""
    return _Rewriter(model).run()


class _Rewriter:
    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        graph = self.model.graph
        infos = (*graph.value_info, *graph.output, *graph.input)
        self.shapes = {info.name: [dim.dim_value for dim in info.type.tensor_type.shape.dim] for info in infos}
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = list(graph.initializer)
        self.count = 0

    def run(self) -> onnx.ModelProto:
        for node in self.model.graph.node:
            self._rewrite(node)
        graph = self.model.graph
        ends = [self._border(info) for info in (*graph.input, *graph.output)]
        inputs, outputs = ends[: len(graph.input)], ends[len(graph.input) :]
        used = _live(self.nodes, {info.name for info in outputs})
        new = helper.make_graph(used, "channels_last", inputs, outputs, self.constants)
        out = onnx.ModelProto()
        out.CopyFrom(self.model)
        out.graph.CopyFrom(new)
        onnx.checker.check_model(out)
        return out

    def _is_image(self, name: str) -> bool:
        return len(self.shapes.get(name, [])) == 4 and name not in {tensor.name for tensor in self.constants}

    def _border(self, info: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
        dims = self.shapes[info.name]
        dims = [dims[axis] for axis in TO_LAST] if len(dims) == 4 else dims
        return helper.make_tensor_value_info(info.name, info.type.tensor_type.elem_type, dims)

    def _name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}_{self.count}"

    def _transpose(self, name: str, order: list[int], result: str | None = None) -> str:
        result = result or self._name("transposed")
        self.nodes.append(helper.make_node("Transpose", [name], [result], self._name("Transpose"), perm=order))
        return result

    def _constant(self, values: Iterable[int]) -> str:
        name = self._name("sizes")
        self.constants.append(numpy_helper.from_array(np.array(list(values), np.int64), name))
        return name

    def _rewrite(self, node: onnx.NodeProto) -> None:
        if not any(self._is_image(name) for name in (*node.input, *node.output)) or node.op_type in (
            "Shape",
            "Constant",
        ):
            self.nodes.append(node)
        elif node.op_type in _WRAPPED:
            self._wrap(node)
        elif node.op_type == "Concat":
            self._append(node, axis=3)
        elif node.op_type in _ACTIVATIONS:
            self._through_unit_dims(node)
        else:
            self._append(node)

    def _append(self, node: onnx.NodeProto, **attributes: int) -> None:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        for attribute in copy.attribute:
            if attribute.name in attributes:
                attribute.i = attributes[attribute.name]
        self.nodes.append(copy)

    def _wrap(self, node: onnx.NodeProto) -> None:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[0] = self._transpose(node.input[0], TO_FIRST)
        if node.op_type == "Resize":  # the sizes that the original computes from shapes, as numbers
            copy.input[:] = [copy.input[0], "", "", self._constant(self.shapes[node.output[0]])]
        copy.output[0] = self._name("channels_first")
        self.nodes.append(copy)
        self._transpose(copy.output[0], TO_LAST, node.output[0])

    def _through_unit_dims(self, node: onnx.NodeProto) -> None:
        batch, channels, height, width = self.shapes[node.output[0]]
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[0] = self._name("opened")
        shape = self._constant([height, width, batch, channels])
        self.nodes.append(helper.make_node("Reshape", [node.input[0], shape], [copy.input[0]], self._name("Reshape")))
        copy.output[0] = self._name("activated")
        self.nodes.append(copy)
        target = self._constant([batch, height, width, channels])
        self.nodes.append(
            helper.make_node("Reshape", [copy.output[0], target], [node.output[0]], self._name("Reshape"))
        )


def _live(nodes: list[onnx.NodeProto], wanted: set[str]) -> list[onnx.NodeProto]:
    """The nodes that lead to `wanted`, in order."""
    kept: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if wanted & set(node.output):
            kept.append(node)
            wanted |= set(node.input)
    return kept[::-1]
