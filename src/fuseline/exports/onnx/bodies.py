"""The body of an operator as nodes, under names of their own: that of a function of the model, that which the standard
defines, or, where a product and its bias part ways, ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx
from onnx import AttributeProto, TypeProto, helper, shape_inference

from fuseline.frontends.onnx.dispatch_functions import renamed
from fuseline.frontends.onnx.protos import nested_nodes, standard_domain

_WITH_BIAS = ("Conv", "ConvTranspose")
_BIAS = 2
_READ_OTHERWISE = {"Attention": 3}
"""Operators with outputs, from this one on, that onnxruntime 1.32 computes in another way than the standard's body: the
scores of Attention under `is_causal`, whose masked elements it leaves finite."""

_SHAPE_IS_INPUT = 5
"""The operator set since which Reshape has its shape as an input."""


class Bodies:
    """The bodies of operators in one model. `types`: of values, where they are known."""

    def __init__(self, proto: onnx.ModelProto, types: Mapping[str, TypeProto]) -> None:
        self.opsets = {standard_domain(item.domain): item.version for item in proto.opset_import}
        self.local = {(one.domain, one.name, one.overload): one for one in proto.functions}
        self.types = types
        self.ranks = {tensor.name: len(tensor.dims) for tensor in proto.graph.initializer}

    def of(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        """The nodes that a node stands for; None where there is no body, or none that is right under the operator sets
        of the model."""
        local = self.local.get((node.domain, node.op_type, node.overload))
        if local is not None:
            return self._inlined(local, node, {}) if self._fits(local, self.opsets) else None
        if standard_domain(node.domain):
            return None
        if node.op_type in _WITH_BIAS:
            return self._without_bias(node)
        return None if any(node.output[_READ_OTHERWISE.get(node.op_type, len(node.output)) :]) else self._standard(node)

    def infers(self, node: onnx.NodeProto) -> bool:
        """Whether the types of the standard's body for a node are right. Some are written for f32, and runtimes that
        infer the types inside of a function refuse them for others. True where there is no body or no type."""
        body = self._of_standard(node)
        if body is None or any(name and name not in self.types for name in node.input):
            return True
        types = [_element(self.types.get(name, TypeProto())) for name in node.input]
        attributes = {**self._defaults(node), **{attribute.name: attribute for attribute in node.attribute}}
        try:
            shape_inference.infer_function_output_types(body, types, list(attributes.values()))
        except (shape_inference.InferenceError, RuntimeError):
            return False
        return True

    def _standard(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        body = self._of_standard(node)
        if body is None:
            return None
        written = {standard_domain(item.domain): item.version for item in body.opset_import}
        return self._inlined(body, node, self._defaults(node)) if self._fits(body, written) else None

    def _schema(self, node: onnx.NodeProto) -> Any:
        """The schema of an operator of the standard (onnx's stub lacks its functions), or None."""
        version = self.opsets.get("", 1)
        known = not standard_domain(node.domain) and onnx.defs.has(node.op_type, version, "")
        return onnx.defs.get_schema(node.op_type, version, "") if known else None

    def _defaults(self, node: onnx.NodeProto) -> dict[str, AttributeProto]:
        schema = self._schema(node)
        return {name: one.default_value for name, one in schema.attributes.items() if one.default_value.name}

    def _of_standard(self, node: onnx.NodeProto) -> onnx.FunctionProto | None:
        """The body that the standard defines for a node, with the operator set that it is written for."""
        schema, version = self._schema(node), self.opsets.get("", 1)
        if schema is None:
            return None
        plain = [one for one in schema.function_opset_versions if one <= version]
        if plain:
            return _body(schema.get_function_with_opset_version(plain[-1]), plain[-1])
        versions = [one for one in schema.context_dependent_function_opset_versions if one <= version]
        if not versions or any(name and name not in self.types for name in node.input):
            return None
        types = [self.types.get(name, TypeProto()).SerializeToString() for name in node.input]
        data = schema.get_context_dependent_function_with_opset_version(versions[-1], node.SerializeToString(), types)
        return _body(data, versions[-1]) if data else None

    def _fits(self, body: onnx.FunctionProto, written: Mapping[str, int]) -> bool:
        """Whether the nodes of a body, written for some operator sets, mean the same under those of the model."""
        versions = {**written, **{standard_domain(item.domain): item.version for item in body.opset_import}}
        for node in nested_nodes(body.node):
            domain = standard_domain(node.domain)
            mine, its = self.opsets.get(domain), versions.get(domain, 0)
            if mine is None or (
                mine != its and _since(node.op_type, domain, mine) != _since(node.op_type, domain, its)
            ):
                return False
        return True

    def _inlined(
        self, body: onnx.FunctionProto, node: onnx.NodeProto, defaults: Mapping[str, AttributeProto]
    ) -> list[onnx.NodeProto] | None:
        given = {attribute.name: attribute for attribute in node.attribute}
        declared = {attribute.name: attribute for attribute in body.attribute_proto}
        attributes = {**defaults, **declared, **given}
        outputs = [*node.output, *[""] * (len(body.output) - len(node.output))]
        inputs = [*node.input, *[""] * (len(body.input) - len(node.input))]
        if len(inputs) > len(body.input) or len(outputs) > len(body.output):
            return None
        names = {name: f"{node.name}/{name}" for one in body.node for name in one.output if name}
        names |= {inner: outer or names.get(inner, "") for inner, outer in zip(body.output, outputs, strict=True)}
        names |= dict(zip(body.input, inputs, strict=True))
        made = {name for one in body.node for name in one.output}
        if any(inner not in made for inner, outer in zip(body.output, outputs, strict=True) if outer):
            return None
        nodes = renamed(body.node, names)
        for number, one in enumerate(nodes):
            one.name = f"{node.name}/{one.name or f'{one.op_type}_{number}'}"
            _resolve(one, attributes)
        return nodes

    def _without_bias(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        """A convolution, and its bias as a sum behind it."""
        rank = self.ranks.get(node.input[1]) if len(node.input) > _BIAS and node.input[_BIAS] else None
        if rank is None or self.opsets.get("", 1) < _SHAPE_IS_INPUT:
            return None
        product = onnx.NodeProto()
        product.CopyFrom(node)
        del product.input[_BIAS:]
        names = {suffix: f"{node.name}/{suffix}" for suffix in ("product", "shape", "bias")}
        product.name, product.output[0] = names["product"], names["product"]
        sizes = helper.make_tensor("shape", onnx.TensorProto.INT64, [rank], [1, -1, *[1] * (rank - 2)])
        return [
            product,
            helper.make_node("Constant", [], [names["shape"]], name=names["shape"], value=sizes),
            helper.make_node("Reshape", [node.input[_BIAS], names["shape"]], [names["bias"]], name=names["bias"]),
            helper.make_node("Add", [names["product"], names["bias"]], [node.output[0]], name=node.name),
        ]


def _body(data: bytes, version: int) -> onnx.FunctionProto:
    body = onnx.FunctionProto.FromString(data)
    if all(standard_domain(item.domain) for item in body.opset_import):
        body.opset_import.append(helper.make_opsetid("", version))
    return body


def _element(type_: TypeProto) -> TypeProto:
    """The type without sizes."""
    out = TypeProto()
    out.CopyFrom(type_)
    if out.HasField("tensor_type"):
        out.tensor_type.ClearField("shape")
    return out


def _since(op_type: str, domain: str, version: int) -> int | None:
    if not onnx.defs.has(op_type, version, domain):
        return None
    return onnx.defs.get_schema(op_type, version, domain).since_version


def _resolve(node: onnx.NodeProto, attributes: Mapping[str, AttributeProto]) -> None:
    """Put what a call gives in place of references to attributes, in graphs inside the node too; one that is not given
    is left out."""
    kept = [found for one in node.attribute if (found := _resolved(one, attributes)) is not None]
    del node.attribute[:]
    node.attribute.extend(kept)
    for one in node.attribute:
        for graph in (one.g, *one.graphs):
            for inner in graph.node:
                _resolve(inner, attributes)


def _resolved(attribute: AttributeProto, attributes: Mapping[str, AttributeProto]) -> AttributeProto | None:
    if not attribute.ref_attr_name:
        return attribute
    given = attributes.get(attribute.ref_attr_name)
    if given is None:
        return None
    out = AttributeProto()
    out.CopyFrom(given)
    out.name = attribute.name
    return out


def with_defaults(nodes: Iterable[onnx.NodeProto], opsets: Mapping[str, int]) -> None:
    """Write out the default attributes of operators whose body asks for them: onnxruntime looks for them in the body of
    a node inside of a function, and finds none."""
    for node in nodes:
        version = opsets.get("", 1)
        if standard_domain(node.domain) or not onnx.defs.has(node.op_type, version, ""):
            continue
        schema: Any = onnx.defs.get_schema(node.op_type, version, "")
        if schema.has_function:
            given = {attribute.name for attribute in node.attribute}
            node.attribute.extend(_missing(schema.attributes.values(), given))


def _missing(attributes: Iterable[Any], given: set[str]) -> Sequence[AttributeProto]:
    return [one.default_value for one in attributes if one.default_value.name and one.name not in given]
