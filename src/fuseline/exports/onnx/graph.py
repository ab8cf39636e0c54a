"""The main graph of a model as numbers: what each node reads and writes, and who makes and reads each value."""

from __future__ import annotations

from collections import defaultdict

import onnx

from fuseline.frontends.onnx.protos import inner_graphs


def names_read(node: onnx.NodeProto) -> tuple[str, ...]:
    """The values that a node reads, those that graphs inside it read from around them too, each once, in order."""
    names = dict.fromkeys(name for name in node.input if name)
    for graph in inner_graphs(node):
        _collect(graph, frozenset(), names)
    return tuple(names)


def _collect(graph: onnx.GraphProto, outer: frozenset[str], names: dict[str, None]) -> None:
    own = outer | {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {tensor.values.name for tensor in graph.sparse_initializer}
    for node in graph.node:
        names.update(dict.fromkeys(name for name in node.input if name and name not in own))
        for inner in inner_graphs(node):
            _collect(inner, own, names)
        own |= frozenset(node.output)
    names.update(dict.fromkeys(info.name for info in graph.output if info.name not in own))


class Graph:
    """Nodes by number. `reads`, `writes`: values by node; `maker`: the node that makes a value; `readers`: those that
    read one; `outputs`: the values that the caller gets."""

    def __init__(self, proto: onnx.GraphProto) -> None:
        self.nodes = list(proto.node)
        self.reads = [names_read(node) for node in self.nodes]
        self.writes = [tuple(name for name in node.output if name) for node in self.nodes]
        self.maker = {name: number for number, names in enumerate(self.writes) for name in names}
        self.outputs = frozenset(info.name for info in proto.output)
        self.readers: dict[str, list[int]] = defaultdict(list)
        for number, names in enumerate(self.reads):
            for name in names:
                self.readers[name].append(number)

    def makers(self, node: int) -> list[int]:
        """The nodes that make what `node` reads."""
        return [self.maker[name] for name in self.reads[node] if name in self.maker]

    def is_output(self, node: int) -> bool:
        """Whether the caller gets a result of the node."""
        return any(name in self.outputs for name in self.writes[node])
