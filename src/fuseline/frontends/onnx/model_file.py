"""Reading and checking a model file: bytes to an onnx-ir model whose external data stays memory-mapped."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError
from onnx import checker

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.contrib import in_standard_operators
from fuseline.frontends.onnx.plain_protos import plain_model
from fuseline.frontends.onnx.weights_in_place import SplitModel, split_model


@dataclass(frozen=True)
class LoadedModel:
    """A checked model: `opsets` maps domains to versions; `name` is the file's (or the graph's) name; `types` those of inputs that
    onnx-ir cannot say."""

    model: ir.Model
    opsets: dict[str, int]
    name: str
    types: Mapping[str, onnx.TypeProto] = field(default_factory=dict[str, onnx.TypeProto])


def load_model(source: str | Path | bytes | onnx.ModelProto) -> LoadedModel:
    """The model at a path, in bytes or as a proto.

    Raises:
        FuselineError: E0101 unreadable or truncated, E0102 not ONNX, E0104 external data outside the folder, E0105 a node is malformed.
    """
    if isinstance(source, onnx.ModelProto):
        return _checked(SplitModel(source), None, source.graph.name or "model")
    if isinstance(source, bytes):
        return _checked(SplitModel(_parse(source, "bytes")), None, "model")
    path = Path(source)
    return _checked(_read(path), path.parent, path.stem)


def _read(path: Path) -> SplitModel:
    try:
        return split_model(path) or SplitModel(_parse(path.read_bytes(), str(path)))
    except OSError as error:
        hint = "check the path" if isinstance(error, FileNotFoundError) else None
        raise FuselineError("E0101", f"cannot read: {error.strerror or error}", node=str(path), hint=hint) from error


def _parse(data: bytes, where: str) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError as error:
        raise FuselineError("E0101", "the file is truncated or is no ONNX model", node=where, hint="export or download it again") from error
    return proto


def _checked(split: SplitModel, folder: Path | None, name: str) -> LoadedModel:
    proto = split.proto
    if not proto.ir_version or not proto.opset_import or not proto.HasField("graph"):
        raise FuselineError("E0102", "no ONNX graph, IR version or operator set in it", node=name, hint="give a model exported to ONNX")
    _check_texts(proto)
    proto = in_standard_operators(proto)
    opsets = {o.domain if o.domain != "ai.onnx" else "": o.version for o in proto.opset_import}
    _check_external_data(proto, folder)
    _check_nodes(proto, opsets)
    try:
        readable, types = plain_model(proto)
        model = ir.from_proto(readable)
        split.put_back(model)
        _put_in_order(model.graph)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ir.serde.SerdeError) as error:
        raise FuselineError("E0105", f"the graph cannot be read: {error}", node=name) from error
    _point_external_tensors_at(model, folder)
    return LoadedModel(model, opsets, name, types)


def _check_texts(proto: onnx.ModelProto) -> None:
    """Refuse (E0105) what protobuf gives as bytes where text must be: names that are not UTF-8."""
    values = (*proto.graph.input, *proto.graph.output, *proto.graph.initializer)
    _require_texts(proto.graph.name, [value.name for value in values])
    for index, node in enumerate(proto.graph.node):
        _require_texts(f"node {index}", chain((node.op_type, node.domain, node.name), node.input, node.output))


def _require_texts(where: str, texts: Iterable[object]) -> None:
    for text in texts:
        if not isinstance(text, str):
            raise FuselineError("E0105", f"the name {text!r} is not UTF-8", node=where, hint="export the model again")


def metadata_of(model: ir.Model) -> dict[str, Any]:
    """What a model says of itself, under the names that onnxruntime's sessions use."""
    return {
        "producer_name": model.producer_name or "",
        "graph_name": model.graph.name or "",
        "domain": model.domain or "",
        "description": model.doc_string or "",
        "graph_description": model.graph.doc_string or "",
        "version": model.model_version or 0,
        "custom_metadata_map": dict(model.metadata_props),
    }


def _put_in_order(graph: ir.Graph) -> None:
    """Sort nodes that stand before what they read: the standard forbids it, but converters append nodes at the end, and other runtimes take it.

    Raises ValueError for a cycle.
    """
    seen: set[ir.Node] = set()
    for node in graph:
        makers = (value.producer() for value in node.inputs if value is not None)
        if any(maker is not None and maker not in seen for maker in makers):
            graph.sort()
            return
        seen.add(node)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node or inner.initializer:
                    yield from _graphs(inner)


def _tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    for graph in _graphs(proto.graph):
        yield from graph.initializer
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t


def _check_external_data(proto: onnx.ModelProto, folder: Path | None) -> None:
    for tensor in _tensors(proto):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        entries = {entry.key: entry.value for entry in tensor.external_data}
        _check_location(tensor.name, entries.get("location", ""), folder)
        _check_range(tensor, entries, folder)


def _check_location(name: str, location: str, folder: Path | None) -> None:
    hint = "keep the weights beside the model file"
    if folder is None:
        raise FuselineError("E0104", f"external data {location!r} without a model file to look beside", node=name, hint="pass the model's path")
    if not location or "\0" in location:
        raise FuselineError("E0104", f"external data location {location!r} names no file", node=name, hint=hint)
    root = os.path.realpath(folder)
    target = os.path.realpath(os.path.join(root, location))
    if os.path.isabs(location) or os.path.commonpath([root, target]) != root:
        raise FuselineError("E0104", f"external data location {location!r} leaves the model's folder", node=name, hint=hint)
    if not os.path.isfile(target):
        raise FuselineError("E0101", f"external data file {location!r} is missing", node=name, hint=hint)


def _check_range(tensor: onnx.TensorProto, entries: dict[str, str], folder: Path | None) -> None:
    size = os.path.getsize(os.path.join(str(folder), entries["location"]))
    try:
        offset, length = int(entries.get("offset", "0")), int(entries.get("length", "0"))
    except ValueError as error:
        raise FuselineError("E0105", f"external data offset or length is no number: {error}", node=tensor.name) from error
    if offset < 0 or length < 0 or offset + (length or _bytes_of(tensor)) > size:
        raise FuselineError("E0101", "external data is truncated", node=tensor.name, hint="copy the weights file again")


def _bytes_of(tensor: onnx.TensorProto) -> int:
    bits = ir.DataType(tensor.data_type).bitwidth
    count = 1
    for size in tensor.dims:
        count *= size
    return -(-count * bits // 8)


def _check_nodes(proto: onnx.ModelProto, opsets: dict[str, int]) -> None:
    context = checker.C.CheckerContext()
    context.ir_version = proto.ir_version
    context.opset_imports = opsets
    for index, node in enumerate(proto.graph.node):
        if node.domain not in ("", "ai.onnx", "ai.onnx.ml") or not _known(node, opsets):
            continue  # unknown operators are listed all at once by the importer
        try:
            checker.check_node(node, context)
        except checker.ValidationError as error:
            label = node.name or f"{node.op_type}_{index}"
            raise FuselineError("E0105", str(error).splitlines()[0], node=label, hint="export the model again, or run onnx.checker on it") from error


def _known(node: onnx.NodeProto, opsets: dict[str, int]) -> bool:
    domain = "" if node.domain == "ai.onnx" else node.domain
    if any(attribute.g.node or attribute.graphs for attribute in node.attribute):
        return False  # a body may read names of the graph around it, which the node checker does not know
    return onnx.defs.has(node.op_type, opsets.get(domain, 1), domain)


def _point_external_tensors_at(model: ir.Model, folder: Path | None) -> None:
    if folder is None:
        return
    for value in model.graph.initializers.values():
        if isinstance(value.const_value, ir.ExternalTensor):
            value.const_value.base_dir = str(folder)
