"""What a model must keep to before it is read: names that mean one value each, nodes as their schemas have them,
functions that end.

Operators that nobody knows are left to the importer, which lists them all at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import onnx
from onnx import AttributeProto, TensorProto, checker, defs, helper

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.operator_sets import version_of
from fuseline.frontends.onnx.protos import inner_graphs, label_of, nested_nodes, standard_domain

Function: TypeAlias = "tuple[str, str, str]"
"""Domain, name and overload."""

_CHECKED_DOMAINS = ("", "ai.onnx.ml")
_CHECKED_AS = {"GroupNormalization": dict.fromkeys(range(18, 21), 21)}
"""Operator, version, the version to check by. The standard calls GroupNormalization deprecated as it first was, with a
scale and a bias for each group (or, as exporters wrote it, each channel); its attributes are those of version 21."""


def check_graphs(proto: onnx.ModelProto, opsets: Mapping[str, int]) -> None:
    """Check the graph, all graphs inside it, and the functions.

    Raises:
        FuselineError: E0105, naming the node, value or function at fault.
    """
    check = _Check(proto.ir_version, opsets)
    check.graph(proto.graph, set(), "")
    _check_functions(proto.functions)
    for function in proto.functions:
        imported = {standard_domain(item.domain): item.version for item in function.opset_import}
        _Check(proto.ir_version, imported).body(function)


class _Check:
    """One walk with the operator sets in force."""

    def __init__(self, ir_version: int, opsets: Mapping[str, int]) -> None:
        self.opsets = opsets
        self.context = checker.C.CheckerContext()
        self.context.ir_version = max(ir_version, 3)
        self.context.opset_imports = dict(opsets)

    def graph(self, graph: onnx.GraphProto, outer: set[str], label: str) -> None:
        """`outer` are the names around it, `label` the node that holds it (empty for the main graph)."""
        _check_inputs(graph, label)
        mine = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        self.nodes(graph.node, mine, outer, label)

    def body(self, function: onnx.FunctionProto) -> None:
        """The nodes of a function."""
        for node in function.node:
            if standard_domain(node.domain) in _CHECKED_DOMAINS and standard_domain(node.domain) not in self.opsets:
                message = f"function {function.name} imports no operator set of domain {node.domain or 'ai.onnx'!r}"
                raise _bad(label_of(node, 0), message)
        self.nodes(function.node, set(function.input), set(), function.name)

    def nodes(self, nodes: Iterable[onnx.NodeProto], inputs: set[str], outer: set[str], label: str) -> None:
        """`inputs` are the names that the graph has before its first node."""
        made: dict[str, str] = {}
        for index, node in enumerate(nodes):
            name = label_of(node, index)
            self._node(node, name)
            for graph in inner_graphs(node):
                self.graph(graph, outer | inputs | set(made), f"{label}/{name}" if label else name)
            for output in filter(None, node.output):
                if output in made or output in inputs:
                    raise _bad(
                        name, f"it defines {output!r}, which {made.get(output, 'an input or constant')} defines already"
                    )
                if output in outer:
                    raise _bad(name, f"it defines {output!r}, which a graph around it defines already")
                made[output] = name

    def _node(self, node: onnx.NodeProto, label: str) -> None:
        domain = standard_domain(node.domain)
        version = version_of(self.opsets, domain, node.op_type)
        if domain not in _CHECKED_DOMAINS or not defs.has(node.op_type, version, domain):
            return
        try:
            checked = version if domain else _CHECKED_AS.get(node.op_type, {}).get(version, version)
            checker.check_node(_plain(node, domain), self._context(domain, checked))
        except checker.ValidationError as error:
            text = str(error).splitlines()[0]
            raise FuselineError(
                "E0105", text, node=label, hint="export the model again, or run onnx.checker on it"
            ) from error
        _check_operands(node, defs.get_schema(node.op_type, version, domain), label)
        _check_values(node, domain, label)

    def _context(self, domain: str, version: int) -> Any:
        if self.opsets.get(domain) == version:
            return self.context
        context = checker.C.CheckerContext()
        context.ir_version, context.opset_imports = self.context.ir_version, {**self.opsets, domain: version}
        return context


def _plain(node: onnx.NodeProto, domain: str) -> onnx.NodeProto:
    """The node as the node checker can judge it: alone, the graphs inside it empty, its constants not looked for in
    files."""
    attributes = node.attribute
    special = any(
        a.type == AttributeProto.GRAPH or a.graphs or a.t.data_location == TensorProto.EXTERNAL for a in attributes
    )
    if not special and node.domain == domain:
        return node
    out = onnx.NodeProto()
    out.CopyFrom(node)
    out.domain = domain
    for attribute in out.attribute:
        if attribute.type == AttributeProto.GRAPH:
            attribute.g.CopyFrom(helper.make_graph([], "g", [], []))
        for graph in attribute.graphs:
            graph.CopyFrom(helper.make_graph([], "g", [], []))
        if attribute.t.data_location == TensorProto.EXTERNAL:
            attribute.t.CopyFrom(TensorProto(name="t", data_type=attribute.t.data_type, dims=[0]))
    return out


def _check_operands(node: onnx.NodeProto, schema: defs.OpSchema, label: str) -> None:
    """What the checker leaves out: of a list of operands, none may be missing."""
    listed = schema.inputs and schema.inputs[-1].option == defs.OpSchema.FormalParameterOption.Variadic
    if listed and "" in node.input[len(schema.inputs) - 1 :]:
        raise _bad(
            label, f"one of its {schema.inputs[-1].name} is missing; an operator that takes a list takes no gaps"
        )


def _check_values(node: onnx.NodeProto, domain: str, label: str) -> None:
    """What the checker leaves out: how many values a constant has."""
    if node.op_type == "Constant" and not domain and len(node.attribute) != 1:
        raise _bad(label, f"a Constant has one value, this one has {len(node.attribute)}")
    if node.op_type == "ConstantOfShape" and any(math.prod(attribute.t.dims) != 1 for attribute in node.attribute):
        raise _bad(label, "the value of a ConstantOfShape has one element, this one has another number")


def _check_inputs(graph: onnx.GraphProto, label: str) -> None:
    names: set[str] = set()
    for value in graph.input:
        if value.name in names:
            raise _bad(label or value.name, f"two inputs are called {value.name!r}")
        names.add(value.name)
    declared = {value.name: value for value in graph.input}
    known: dict[str, TensorProto] = {}
    for tensor in graph.initializer:
        before = known.setdefault(tensor.name, tensor)
        if (list(before.dims), before.data_type) != (list(tensor.dims), tensor.data_type):
            raise _bad(tensor.name, "two constants of other sizes or types have this name")
        if tensor.name in declared:
            _check_default(declared[tensor.name], tensor)


def _check_default(value: onnx.ValueInfoProto, tensor: TensorProto) -> None:
    """An input with a default value is declared as what the default is."""
    type_ = value.type.tensor_type
    if type_.elem_type not in (0, tensor.data_type):
        names = [TensorProto.DataType.Name(code) for code in (type_.elem_type, tensor.data_type)]
        raise _bad(tensor.name, f"declared as an input of {names[0]}, but its constant is {names[1]}")
    if not type_.HasField("shape"):
        return
    sizes = [dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None for dim in type_.shape.dim]
    fits = len(sizes) == len(tensor.dims) and all(a in (None, b) for a, b in zip(sizes, tensor.dims, strict=True))
    if not fits:
        raise _bad(tensor.name, f"declared as an input of sizes {sizes}, but its constant has {list(tensor.dims)}")


def _check_functions(functions: Iterable[onnx.FunctionProto]) -> None:
    calls: dict[Function, list[Function]] = {}
    for function in functions:
        key = (standard_domain(function.domain), function.name, function.overload)
        if key in calls:
            raise _bad(function.name, f"two functions of domain {function.domain!r} have this name")
        calls[key] = [
            (standard_domain(node.domain), node.op_type, node.overload) for node in nested_nodes(function.node)
        ]
    done: set[Function] = set()
    for key in calls:
        _check_ends(key, calls, done)


def _check_ends(start: Function, calls: Mapping[Function, list[Function]], done: set[Function]) -> None:
    """Walk the calls from `start`, depth first, without recursion: a chain may be long."""
    path: dict[Function, list[Function]] = {start: list(calls[start])}
    while path:
        current = next(reversed(path))
        if current in done or not path[current]:
            done.add(current)
            del path[current]
            continue
        called = path[current].pop()
        if called in path:
            raise _bad(called[1], "the function calls itself" + ("" if called == current else f" through {current[1]}"))
        if called in calls and called not in done:
            path[called] = list(calls[called])


def _bad(label: str, message: str) -> FuselineError:
    return FuselineError("E0105", message, node=label, hint="export the model again")
