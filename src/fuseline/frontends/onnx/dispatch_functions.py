"""Models that `fuseline fuse` wrote: each dispatch a function of a domain of our own. They are read as the model that
they were made from, node by node, under its names.

    main: y = fuseline.dispatch.contraction_Gemm_Relu_000(x, w)        =>    main: h = Gemm(x, w)   y = Relu(h)
    contraction_Gemm_Relu_000(x, w) { h = Gemm(x, w)   y = Relu(h) }

A node that stands in several functions is one again, and nodes are in the order that they had.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import onnx

from fuseline.frontends.onnx.protos import graphs, inner_graphs, nested_graphs

DOMAIN = "fuseline.dispatch"
"""The domain of functions that are dispatches."""

INDEX = "fuseline.index"
"""Metadata of a node: its place in the model that was fused."""


def without_dispatch_functions(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with calls of dispatches in its main graph replaced by what these do; the same object where it has
    none, else a copy."""
    functions = {function.name: function for function in proto.functions if function.domain == DOMAIN}
    if not any(_is_call(node, functions) for node in proto.graph.node):
        return proto
    out = onnx.ModelProto()
    out.CopyFrom(proto)
    inlining = _Inlining(out, functions)
    for node in proto.graph.node:
        if _is_call(node, functions):
            inlining.expand(node, functions[node.op_type])
        else:
            inlining.add(node)
    del out.graph.node[:]
    out.graph.node.extend(_in_order(inlining.nodes))
    _forget(out)
    return out


def index_of(node: onnx.NodeProto) -> int | None:
    """The place that a node had in the model that was fused; None where that is not said."""
    text = next((entry.value for entry in node.metadata_props if entry.key == INDEX), "")
    return int(text) if text.isdecimal() else None


def _is_call(node: onnx.NodeProto, functions: Mapping[str, onnx.FunctionProto]) -> bool:
    function = functions.get(node.op_type) if node.domain == DOMAIN else None
    return function is not None and not (node.attribute or function.attribute or function.attribute_proto)


class _Inlining:
    """The nodes of the main graph under construction. `_makers`: the nodes that make a value of a name, as bytes: what
    has one maker is one value, in however many functions it is made."""

    def __init__(self, out: onnx.ModelProto, functions: Mapping[str, onnx.FunctionProto]) -> None:
        self.out = out
        self.nodes: list[onnx.NodeProto] = []
        self._made: dict[str, bytes] = {}
        fed = {info.name for info in out.graph.input} | {tensor.name for tensor in out.graph.initializer}
        fed |= {tensor.values.name for tensor in out.graph.sparse_initializer}
        fed |= {name for node in out.graph.node for name in _names_inside(node)}
        self._makers: dict[str, set[bytes]] = {name: {b""} for name in fed}
        for call in out.graph.node:
            function = functions.get(call.op_type) if _is_call(call, functions) else None
            for node in [call] if function is None else renamed(function.node, _borders(call, function)):
                for name in node.output:
                    self._makers.setdefault(name, set()).add(_key(node))
        self._infos = {info.name for info in (*out.graph.value_info, *out.graph.input, *out.graph.output)}

    def add(self, node: onnx.NodeProto) -> None:
        """One more node, unless it is there already."""
        key = _key(node)
        if not any(name and self._made.get(name) == key for name in node.output):
            self.nodes.append(node)
            self._made.update((name, key) for name in node.output if name)

    def expand(self, call: onnx.NodeProto, function: onnx.FunctionProto) -> None:
        """The nodes of a function, under the names of its call."""
        names = _borders(call, function)
        for name in {name for node in function.node for name in node.output if name} - names.keys():
            names[name] = self._own(name, call.name)
        for node in renamed(function.node, names):
            self.add(node)
        self._declare(function.value_info, names)

    def _own(self, name: str, call: str) -> str:
        """The name of a value inside a function: its own, unless another value has that."""
        if len(self._makers[name]) == 1:
            return name
        number = 0
        while (unique := f"{name}_{call}_{number}") in self._makers:
            number += 1
        self._makers[unique] = {b""}
        return unique

    def _declare(self, infos: Iterable[onnx.ValueInfoProto], names: Mapping[str, str]) -> None:
        for info in infos:
            name = names.get(info.name, info.name)
            if name not in self._infos:
                self._infos.add(name)
                own = self.out.graph.value_info.add()
                own.CopyFrom(info)
                own.name = name


def _names_inside(node: onnx.NodeProto) -> Iterator[str]:
    """The names that graphs inside a node give to values."""
    for outer in inner_graphs(node):
        for graph in nested_graphs(outer):
            yield from (info.name for info in graph.input)
            yield from (tensor.name for tensor in graph.initializer)
            yield from (name for inner in graph.node for name in inner.output)


def _borders(call: onnx.NodeProto, function: onnx.FunctionProto) -> dict[str, str]:
    """The names outside of what a function takes and gives. An input that the call leaves out is left out inside; a
    result may be read there."""
    given = [*call.input, *[""] * (len(function.input) - len(call.input))]
    taken = zip(function.output, call.output, strict=False)
    return dict(zip(function.input, given, strict=False)) | {inner: outer for inner, outer in taken if outer}


def renamed(nodes: Iterable[onnx.NodeProto], names: Mapping[str, str]) -> list[onnx.NodeProto]:
    """Copies of nodes that read and write values under other names."""
    copies: list[onnx.NodeProto] = []
    for node in nodes:
        copies.append(onnx.NodeProto())
        copies[-1].CopyFrom(node)
        _rename(copies[-1], names)
    return copies


def _key(node: onnx.NodeProto) -> bytes:
    return node.SerializeToString(deterministic=True)


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Let a node, and what is inside it, read and write values under their names around it."""
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for graph in inner_graphs(node):
        own = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
        own |= {name for inner in graph.node for name in inner.output}
        outer = {old: new for old, new in names.items() if old not in own}
        for inner in graph.node:
            _rename(inner, outer)
        for info in graph.output:
            info.name = outer.get(info.name, info.name)


def _in_order(nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Nodes as they stood before, where all of them say so."""
    places = [index_of(node) for node in nodes]
    known = [place for place in places if place is not None]
    if len(known) < len(nodes):
        return nodes
    return [node for _, node in sorted(zip(known, nodes, strict=True), key=lambda pair: pair[0])]


def _forget(out: onnx.ModelProto) -> None:
    """Drop the functions that nothing calls any more."""
    called = {node.op_type for graph in graphs(out) for node in graph.node if node.domain == DOMAIN}
    called |= {node.op_type for function in out.functions for node in function.node if node.domain == DOMAIN}
    kept = [function for function in out.functions if function.domain != DOMAIN or function.name in called]
    del out.functions[:]
    out.functions.extend(kept)
