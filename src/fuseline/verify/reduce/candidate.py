"""A model with feeds, and the same with fewer nodes: what those that are gone made is fed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Array = NDArray[Any]
Feeds = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model that holds its weights, and an array for each of its inputs."""

    model: onnx.ModelProto
    feeds: Feeds

    @property
    def nodes(self) -> Sequence[onnx.NodeProto]:
        """Its nodes, in order."""
        return self.model.graph.node

    @property
    def elements(self) -> int:
        """Elements of all inputs and weights."""
        weights = sum(int(np.prod(tensor.dims)) for tensor in self.model.graph.initializer)
        return weights + sum(array.size for array in self.feeds.values())

    @property
    def size(self) -> tuple[int, int, int]:
        """What is made smaller: nodes, then elements, then bytes."""
        return len(self.nodes), self.elements, self.model.ByteSize()


def reads(node: onnx.NodeProto) -> list[str]:
    """The names that a node reads, those of its subgraphs included."""
    found = [name for name in node.input if name]
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            found += [name for inner in graph.node for name in reads(inner)]
            found += [output.name for output in graph.output]
    return found


def rebuilt(
    base: Candidate,
    nodes: Iterable[onnx.NodeProto],
    outputs: Sequence[str],
    values: Feeds,
    weights: Iterable[onnx.TensorProto] | None = None,
) -> Candidate | None:
    """The nodes that `outputs` need, in the domains and versions of `base`; what they read and no node makes is an
    input, with its array of `values`. None where there is no such array."""
    kept: list[onnx.NodeProto] = []
    needed = set(outputs)
    for node in reversed(list(nodes)):
        if needed & set(node.output):
            kept.append(node)
            needed |= set(reads(node))
    made = {name for node in kept for name in node.output}
    held = [one for one in (base.model.graph.initializer if weights is None else weights) if one.name in needed]
    inner = {name for node in kept for name in _made_inside(node)}
    fed = sorted(needed - made - {one.name for one in held} - inner)
    if not kept or not all(name in values for name in (*fed, *outputs)):
        return None
    graph = helper.make_graph(
        kept[::-1],
        "reduced",
        [_declared(name, values[name]) for name in fed],
        [_declared(name, values[name]) for name in outputs],
        held,
    )
    model = helper.make_model(graph, opset_imports=base.model.opset_import, functions=base.model.functions)
    model.ir_version = base.model.ir_version
    return Candidate(model, {name: values[name] for name in fed})


def _made_inside(node: onnx.NodeProto) -> list[str]:
    """Names that only exist inside of a node's subgraphs."""
    graphs = [graph for attribute in node.attribute for graph in (attribute.g, *attribute.graphs)]
    found: list[str] = []
    for graph in graphs:
        found += [tensor.name for tensor in (*graph.initializer, *graph.input)]
        for inner in graph.node:
            found += [*inner.output, *_made_inside(inner)]
    return found


def _declared(name: str, array: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def weight_of(array: Array, name: str) -> onnx.TensorProto:
    """An array as a weight."""
    return numpy_helper.from_array(np.ascontiguousarray(array), name)


def weights_of(candidate: Candidate) -> dict[str, Array]:
    """The weights by name."""
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in candidate.model.graph.initializer}


def forget_sizes(model: onnx.ModelProto) -> None:
    """Leave the sizes of outputs to whoever reads the model: they follow from what was changed."""
    for value in model.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
