"""The graph under rewriting: what its values are known to be, and how it is changed.

Only nodes of the main graph change. What subgraphs capture, graph outputs and inputs keep their names and values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from fuseline.exports.optimized.summary import Summary

Array = NDArray[Any]
Size = int | str | None
"""A size: a number, a symbol, or unknown."""


class Editor:
    """A model's main graph with the questions and changes that rewrites need."""

    def __init__(self, model: ir.Model, summary: Summary) -> None:
        self.model, self.graph, self.summary = model, model.graph, summary
        self.opset = model.graph.opset_imports.get("", 0)
        self._inputs = {id(value) for value in model.graph.inputs}
        self._names = {str(value.name) for value in _values(model)}

    # -- questions -----------------------------------------------------------------------------------------------------

    def nodes(self) -> list[ir.Node]:
        """The nodes as they stand, in order; a rewrite may remove some of them before it reaches them."""
        return list(self.graph)

    def constant(self, value: ir.Value | None) -> Array | None:
        """The content of an initializer that no caller can replace, or of a Constant node; None for anything else."""
        if value is None or id(value) in self._inputs:
            return None
        tensor = value.const_value
        if tensor is None or tensor.dtype == ir.DataType.STRING:
            return None
        return np.asarray(tensor.numpy())

    def is_constant(self, value: ir.Value | None) -> bool:
        """Whether `constant` has an answer, without reading it."""
        return value is not None and value.const_value is not None and id(value) not in self._inputs

    def numbers(self, node: ir.Node, index: int, attribute: str) -> list[int] | None:
        """Integers that a node has as an attribute or, in newer operator sets, as a constant input; None where they are
        not there or not known."""
        if attribute in node.attributes:
            return [int(number) for number in np.ravel(node.attributes[attribute].value)]
        found = self.constant(operand(node, index))
        return None if found is None else [int(number) for number in found.reshape(-1)]

    def users(self, value: ir.Value) -> list[ir.Node]:
        """The nodes that read a value, each once, those of subgraphs too."""
        return list(dict.fromkeys(use.node for use in value.uses()))

    def only_user(self, value: ir.Value) -> ir.Node | None:
        """The one node of the main graph that reads a value which is no output."""
        users = self.users(value)
        alone = len(users) == 1 and not value.is_graph_output() and users[0].graph is self.graph
        return users[0] if alone else None

    # -- changes -------------------------------------------------------------------------------------------------------

    def unique(self, stem: str) -> str:
        """`stem`, with a number where the model has that name."""
        name, count = stem, 0
        while name in self._names:
            count += 1
            name = f"{stem}_{count}"
        self._names.add(name)
        return name

    def new_constant(self, array: Array, stem: str) -> ir.Value:
        """A new initializer."""
        name = self.unique(stem)
        array = np.array(array, order="C")
        value = ir.val(name, ir.DataType.from_numpy(array.dtype), array.shape, const_value=ir.tensor(array, name=name))
        self.graph.register_initializer(value)
        return value

    def new_node(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        at: ir.Node,
        shape: Sequence[Size] | None,
        attributes: Mapping[str, Any] | None = None,
    ) -> ir.Value:
        """The output of a new node in front of `at`, named after it; its elements are those of its first input."""
        stem = f"{at.name or at.op_type}/{op_type}"
        made = ir.node(op_type, inputs, attributes, name=self.unique(stem), num_outputs=1)
        out = made.outputs[0]
        out.name = self.unique(f"{stem}_out")
        out.shape = None if shape is None else ir.Shape(list(shape))
        first = next(value for value in inputs if value is not None)
        out.type = None if first.dtype is None else ir.TensorType(first.dtype)
        made.metadata_props.update(at.metadata_props)
        self.graph.insert_before(at, made)
        return out

    def new_behind(
        self, op_type: str, value: ir.Value, named: ir.Node, shape: Sequence[Size] | None, attributes: Mapping[str, Any]
    ) -> ir.Value:
        """The output of a new node that reads `value`, as early as can be; it is named after `named`."""
        out = self.new_node(op_type, [value], named, shape, attributes)
        made, maker = out.producer(), value.producer()
        assert made is not None
        self.graph.remove(made)
        if maker is None:
            self.graph.insert_before(self.graph[0], made)
        else:
            self.graph.insert_after(maker, made)
        return out

    def hand_over_output(self, old: ir.Value, new: ir.Value) -> None:
        """Where `old` is an output of the graph, let `new` be it, under its name."""
        if not old.is_graph_output():
            return
        name = str(old.name)
        old.name, new.name = self.unique(f"{name}/before"), name
        for index, value in enumerate(self.graph.outputs):
            if value is old:
                self.graph.outputs[index] = new

    def replace(self, old: ir.Value, new: ir.Value, at: ir.Node) -> None:
        """Let everything read `new` in place of `old`; an output of the graph keeps its name."""
        if old.is_graph_output():
            if new.is_graph_output() or new.producer() is None:
                new = self.new_node("Identity", [new], at, sizes(new))
            name = str(old.name)
            old.name, new.name = self.unique(f"{name}/before"), name
            new.type, new.shape = old.type, old.shape
        old.replace_all_uses_with(new, replace_graph_outputs=True)

    def remove_unused(self, node: ir.Node) -> None:
        """Take out a node whose outputs nothing reads, and what only it read."""
        pending = [node]
        while pending:
            node = pending.pop()
            if node.graph is not self.graph or any(out.uses() or out.is_graph_output() for out in node.outputs):
                continue
            makers = [value.producer() for value in node.inputs if value is not None]
            self.graph.remove(node, safe=True)
            pending += [maker for maker in makers if maker is not None]


def operand(node: ir.Node, index: int) -> ir.Value | None:
    """An input, None where it is left out."""
    return node.inputs[index] if index < len(node.inputs) else None


def sizes(value: ir.Value | None) -> tuple[Size, ...] | None:
    """The sizes of a value, None where its rank is unknown."""
    if value is None or value.shape is None:
        return None
    return tuple(dim if isinstance(dim, int) else dim.value for dim in value.shape)


def reconnect(users: Sequence[ir.Node], old: ir.Value, new: ir.Value) -> None:
    """Let these nodes read `new` where they read `old`."""
    for user in users:
        for index, value in enumerate(user.inputs):
            if value is old:
                user.replace_input_with(index, new)


def rank(value: ir.Value | None) -> int | None:
    """The rank of a value, None where it is unknown."""
    found = sizes(value)
    return None if found is None else len(found)


def static_sizes(value: ir.Value | None) -> tuple[int, ...] | None:
    """The sizes of a value where all are numbers."""
    found = sizes(value)
    if found is None:
        return None
    known = tuple(size for size in found if isinstance(size, int))
    return known if len(known) == len(found) else None


def is_standard(node: ir.Node, *op_types: str) -> bool:
    """Whether a node is one of these operators of the standard."""
    return node.domain in ("", "ai.onnx") and node.op_type in op_types


def attribute(node: ir.Node, name: str, default: Any) -> Any:
    """The value of an attribute."""
    return node.attributes[name].value if name in node.attributes else default


def _values(model: ir.Model) -> Iterator[ir.Value]:
    graph = model.graph
    for inner in (graph, *graph.subgraphs()):
        yield from (*inner.inputs, *inner.initializers.values())
    for node in graph.all_nodes():
        yield from node.outputs
        if node.name:
            yield ir.Value(name=node.name)
