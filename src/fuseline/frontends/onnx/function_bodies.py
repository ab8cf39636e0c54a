"""Bodies that the ONNX standard defines for an operator, and ours for those of onnxruntime, as functions to expand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import onnx
import onnx_ir as ir

from fuseline.frontends.onnx.contrib_bodies import contrib_body, takes_halves
from fuseline.frontends.onnx.dtypes import to_onnx
from fuseline.frontends.onnx.emission import cast
from fuseline.frontends.onnx.foreign_operators import is_foreign
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.subgraphs import node_proto
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.frontends.onnx.wide_halves import with_wide_inputs

WRONG = frozenset(("AffineGrid",))
"""Operators whose body in the standard does not compute them: of a batch of one it drops the batch too."""

MASK = 3
"""The place of the mask among the inputs of Attention."""


def as_its_body_takes_it(node: OnnxNode, domain: str) -> OnnxNode:
    """`node`, with inputs of types that its body computes right: halves in f32, for the body is one operator; a mask of
    integers, into which the body of Attention would put minus infinity, is numbers of the queries' type."""
    node = node if is_foreign(domain) and takes_halves(node.op_type) else with_wide_inputs(node)
    mask = node.get(MASK) if node.op_type == "Attention" and not is_foreign(domain) else None
    if mask is None or mask.dtype.kind not in "iu":
        return node
    return replace(
        node, inputs=[cast(node, mask, node[0].dtype) if i == MASK else t for i, t in enumerate(node.inputs)]
    )


def function_body(node: OnnxNode, domain: str, version: int) -> tuple[ir.Function, Mapping[str, int]] | None:
    """The body for `node` with its operator sets, as the standard has it, or ours for an operator of onnxruntime's;
    None where there is none that holds for this version.

    Raises:
        NoNativeLowering: ours does not cover the call.
    """
    if domain == "com.microsoft":
        return contrib_body(node)
    if (domain == "" and node.op_type in WRONG) or not onnx.defs.has(node.op_type, version, domain):
        return None
    schema: Any = onnx.defs.get_schema(node.op_type, version, domain)  # onnx's stub lacks the functions of a schema
    proto = _plain(schema, version) if schema.has_function else None
    if proto is None and schema.has_context_dependent_function:
        proto = _for_context(schema, node, version)
    if proto is None:
        return None
    opsets = {**node.opsets, **({o.domain: o.version for o in proto.opset_import} or {domain: version})}
    _complete_outputs(proto)
    function = ir.from_proto(proto)
    for name, attribute in schema.attributes.items():
        if attribute.default_value.name and (
            name not in function.attributes or function.attributes[name].value is None
        ):
            function.attributes[name] = ir.from_proto(attribute.default_value)
    return function, opsets


def _complete_outputs(proto: onnx.FunctionProto) -> None:
    """Bodies made for one call leave out what the call does not ask for, yet list it as an output: such outputs are
    dropped."""
    made = {name for node in proto.node for name in node.output} | set(proto.input)
    kept = [name for name in proto.output if name in made]
    while proto.output and proto.output[-1] not in made:
        proto.output.pop()
    if list(proto.output) != kept:
        filler = kept[0] if kept else ""
        proto.output[:] = [name if name in made else filler for name in proto.output]


def _plain(schema: Any, version: int) -> onnx.FunctionProto | None:
    versions = [v for v in schema.function_opset_versions if v <= version]
    if not versions:
        return None
    return onnx.FunctionProto.FromString(schema.get_function_with_opset_version(versions[-1]))


def _for_context(schema: Any, node: OnnxNode, version: int) -> onnx.FunctionProto | None:
    versions = [v for v in schema.context_dependent_function_opset_versions if v <= version]
    if not versions:
        return None
    types = [_type_of(t).SerializeToString() for t in node.inputs]
    data = schema.get_context_dependent_function_with_opset_version(
        versions[-1], node_proto(node.source, node.attributes).SerializeToString(), types
    )
    return onnx.FunctionProto.FromString(data) if data else None


def _type_of(t: Tensor | None) -> onnx.TypeProto:
    if t is None:
        return onnx.TypeProto()
    dims = [dim if isinstance(dim, int) else None for dim in t.dims]
    return onnx.helper.make_tensor_type_proto(int(to_onnx(t.dtype)), dims)
