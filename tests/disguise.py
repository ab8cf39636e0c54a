"""The same model written another way: nodes in another order, other names for everything, other weights."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper


def disguised(model: onnx.ModelProto, seed: int, *, retrained: bool = True) -> onnx.ModelProto:
    """A copy of `model` (without subgraphs) whose nodes come in another topological order, with new names for nodes,
    values, weights and symbols; `retrained` also changes the values of its large floating-point weights."""
    rng = np.random.default_rng(seed)
    out = onnx.ModelProto()
    out.CopyFrom(model)
    _reorder(out.graph, rng)
    _rename(out.graph, rng)
    if retrained:
        for tensor in out.graph.initializer:
            _retrain(tensor, rng)
    return out


def _reorder(graph: onnx.GraphProto, rng: np.random.Generator) -> None:
    made_by = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    needs = [{made_by[name] for name in node.input if name in made_by} for node in graph.node]
    users: list[list[int]] = [[] for _ in graph.node]
    for i, found in enumerate(needs):
        for j in found:
            users[j].append(i)
    missing = [len(found) for found in needs]
    ready = [i for i, count in enumerate(missing) if not count]
    order: list[int] = []
    while ready:
        i = ready.pop(int(rng.integers(len(ready))))
        order.append(i)
        for user in users[i]:
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    nodes = [onnx.NodeProto.FromString(graph.node[i].SerializeToString()) for i in order]
    del graph.node[:]
    graph.node.extend(nodes)


def _rename(graph: onnx.GraphProto, rng: np.random.Generator) -> None:
    names = _Names(rng)
    for node in graph.node:
        node.name = names.of(f"node {node.name}")
        node.input[:] = [names.of(name) for name in node.input]
        node.output[:] = [names.of(name) for name in node.output]
    for tensor in graph.initializer:
        tensor.name = names.of(tensor.name)
    del graph.value_info[:]
    for value in (*graph.input, *graph.output):
        value.name = names.of(value.name)
        for dim in value.type.tensor_type.shape.dim:
            if dim.HasField("dim_param"):
                dim.dim_param = names.of(f"dim {dim.dim_param}")


class _Names:
    """A new name for each old one; nothing stays nothing."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.known = rng, {"": ""}

    def of(self, name: str) -> str:
        if name not in self.known:
            self.known[name] = f"v{int(self.rng.integers(1 << 40)):x}_{len(self.known)}"
        return self.known[name]


def _retrain(tensor: onnx.TensorProto, rng: np.random.Generator) -> None:
    values = numpy_helper.to_array(tensor)
    if values.dtype == np.float32 and values.size > 64:
        noise = rng.uniform(0.5, 1, values.shape).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(values * noise, tensor.name))
