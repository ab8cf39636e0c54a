"""Operators that are defined by other operators: ONNX's own function bodies and those that a model brings along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
import onnx_ir as ir

from fuseline.frontends.onnx.dtypes import to_onnx
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.dim import to_text


def bound_attributes(source: ir.Node, bindings: Mapping[str, ir.Attr]) -> dict[str, ir.Attr]:
    """A node's attributes with references to the enclosing function's attributes resolved; unbound references are left out."""
    out: dict[str, ir.Attr] = {}
    for name, attribute in source.attributes.items():
        if not attribute.is_ref():
            out[name] = attribute
        elif attribute.ref_attr_name in bindings:
            out[name] = bindings[str(attribute.ref_attr_name)]
    return out


def expand(node: OnnxNode) -> Sequence[Tensor | None] | None:
    """The outputs of the node's function body translated in place; None where it has none.

    Raises:
        NoNativeLowering: something inside has no native lowering.
    """
    function = _function_of(node)
    if function is None:
        return None
    from fuseline.frontends.onnx.importer import Scope

    importer = node.importer
    for value, t in zip(function.inputs, [*node.inputs, *[None] * len(function.inputs)], strict=False):
        importer.environment[value] = t
    opsets = {("" if domain == "ai.onnx" else domain): version for domain, version in function.opset_imports.items()}
    bindings = _defaults(function) | dict(node.attributes)
    importer.import_nodes(function, Scope(opsets or importer.loaded.opsets, bindings, node.label, inside_function=True))
    return [importer.lookup(value) for value in function.outputs]


def _defaults(function: ir.Function) -> dict[str, ir.Attr]:
    return {name: attribute for name, attribute in function.attributes.items() if attribute.value is not None}


def _function_of(node: OnnxNode) -> ir.Function | None:
    source = node.source
    local = node.importer.loaded.model.functions.get((source.domain, source.op_type, source.overload))
    if local is not None:
        return local
    if not onnx.defs.has(source.op_type, node.opset, source.domain):
        return None
    schema = onnx.defs.get_schema(source.op_type, node.opset, source.domain)
    proto = _context_dependent(node, schema) if schema.has_context_dependent_function else _plain(node, schema)
    if proto is None:
        return None
    function = ir.serde.deserialize_function(proto)
    for name, attribute in schema.attributes.items():
        if name not in function.attributes and attribute.default_value.name:
            function.attributes[name] = ir.serde.deserialize_attribute(attribute.default_value)
    return function


def _plain(node: OnnxNode, schema: onnx.defs.OpSchema) -> onnx.FunctionProto | None:
    if not schema.has_function:
        return None
    version = max((v for v in schema.function_opset_versions if v <= node.opset), default=None)
    if version is None:
        version = min(schema.function_opset_versions)
    proto = onnx.FunctionProto()
    proto.ParseFromString(schema.get_function_with_opset_version(version))
    return proto


def _context_dependent(node: OnnxNode, schema: onnx.defs.OpSchema) -> onnx.FunctionProto | None:
    versions = schema.context_dependent_function_opset_versions
    version = max((v for v in versions if v <= node.opset), default=min(versions))
    types = [_type_of(t).SerializeToString() for t in node.inputs]
    data = schema.get_context_dependent_function_with_opset_version(version, _bound_proto(node).SerializeToString(), types)
    if not data:
        raise NoNativeLowering("no-function-body", node.op_type)
    proto = onnx.FunctionProto()
    proto.ParseFromString(data)
    return proto


def _bound_proto(node: OnnxNode) -> onnx.NodeProto:
    proto = ir.serde.serialize_node(node.source)
    del proto.attribute[:]
    proto.attribute.extend(ir.serde.serialize_attribute(attribute) for attribute in node.attributes.values())
    return proto


def bound_proto(node: OnnxNode) -> onnx.NodeProto:
    """The node as a proto, with its attributes resolved."""
    return _bound_proto(node)


def _type_of(t: Tensor | None) -> onnx.TypeProto:
    if t is None:
        return onnx.TypeProto()
    return onnx.helper.make_tensor_type_proto(to_onnx(t.dtype).value, [d if isinstance(d, int) else to_text(d) for d in t.dims])
