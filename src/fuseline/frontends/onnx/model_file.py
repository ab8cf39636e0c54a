"""Reading and checking a model file: bytes to an onnx-ir model whose external data stays memory-mapped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.check_graphs import check_graphs
from fuseline.frontends.onnx.check_tensors import check_tensors, external_files
from fuseline.frontends.onnx.contrib import in_standard_operators
from fuseline.frontends.onnx.dispatch_functions import without_dispatch_functions
from fuseline.frontends.onnx.operator_sets import operator_sets
from fuseline.frontends.onnx.plain_protos import plain_model
from fuseline.frontends.onnx.subgraphs import inner_nodes
from fuseline.frontends.onnx.weights_in_place import SplitModel, split_model

_ORT_FORMAT = b"ORTM"
"""What a FlatBuffers file of onnxruntime's is called in its header, behind the place of its root."""


@dataclass(frozen=True)
class LoadedModel:
    """A checked model: `opsets` maps domains to versions; `name` is the file's (or the graph's) name; `types` those of
    inputs that onnx-ir cannot say; `files` lie beside the model's and hold external data."""

    model: ir.Model
    opsets: dict[str, int]
    name: str
    types: Mapping[str, onnx.TypeProto] = field(default_factory=dict[str, onnx.TypeProto])
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class OpenedModel:
    """A model that is parsed and not yet checked: its large weights apart, the folder where external data lies, and the
    file's (or the graph's) name."""

    split: SplitModel
    folder: Path | None
    name: str


def open_model(source: str | Path | bytes | onnx.ModelProto) -> OpenedModel:
    """The model at a path, in bytes or as a proto. Raises FuselineError: E0101 unreadable or truncated, E0102 not
    ONNX."""
    if isinstance(source, onnx.ModelProto):
        return OpenedModel(SplitModel(source), None, source.graph.name or "model")
    if isinstance(source, bytes):
        return OpenedModel(SplitModel(_parse(source, "bytes")), None, "model")
    path = Path(source)
    return OpenedModel(_read(path), path.parent, path.stem)


def load_model(source: str | Path | bytes | onnx.ModelProto | OpenedModel) -> LoadedModel:
    """The model at a path, in bytes, as a proto, or opened.

    Raises:
        FuselineError: E0101 unreadable or truncated, E0102 not ONNX, E0104 external data outside the folder, E0105 a
        node is malformed.
    """
    opened = source if isinstance(source, OpenedModel) else open_model(source)
    return _checked(opened.split, opened.folder, opened.name)


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
        if data[4:8] == _ORT_FORMAT:
            hint = "give the ONNX model that it was made from"
            raise FuselineError(
                "E0102", "the model is in onnxruntime's own format (.ort)", node=where, hint=hint
            ) from error
        raise FuselineError(
            "E0101", "the file is truncated or is no ONNX model", node=where, hint="export or download it again"
        ) from error
    return proto


def _checked(split: SplitModel, folder: Path | None, name: str) -> LoadedModel:
    proto = split.proto
    if not proto.HasField("ir_version") or not proto.opset_import or not proto.HasField("graph"):
        raise FuselineError(
            "E0102", "no ONNX graph, IR version or operator set in it", node=name, hint="give a model exported to ONNX"
        )
    if proto.ir_version > onnx.IR_VERSION:
        message = (
            f"IR version {proto.ir_version} is newer than the installed onnx package, which knows {onnx.IR_VERSION}"
        )
        raise FuselineError("E0105", message, node=name, hint="install a newer onnx package")
    _check_texts(proto)
    opsets = operator_sets(proto, name)
    check_tensors(proto, folder, elsewhere=split.where)
    try:
        whole = without_dispatch_functions(proto)
        readable, types = plain_model(in_standard_operators(whole, opsets))
        check_graphs(readable, opsets)
        model = ir.from_proto(readable)
        _declare_inputs(model.graph, readable.graph.input)
        split.put_back(model)
        _put_in_order(model.graph)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ir.serde.SerdeError) as error:
        raise FuselineError("E0105", f"the graph cannot be read: {error}", node=name) from error
    if folder is not None:
        _look_beside(model, folder)
    return LoadedModel(model, opsets, name, types, external_files(proto))


def _declare_inputs(graph: ir.Graph, declared: Iterable[onnx.ValueInfoProto]) -> None:
    """Inputs that are outputs too are what they were declared as inputs; onnx-ir keeps the output's declaration, which
    may say less."""
    outputs = set(graph.outputs)
    for value, info in zip(graph.inputs, declared, strict=True):
        if value in outputs:
            ir.serde.deserialize_value_info_proto(info, value)


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


def _look_beside(model: ir.Model, folder: Path) -> None:
    """External data lies in `folder`, that of subgraphs, attributes and functions too."""
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        ir.external_data.set_base_dir(graph, str(folder))


def _put_in_order(graph: ir.Graph) -> None:
    """Sort nodes that stand before what they read: the standard forbids it, but converters append nodes at the end, and
    other runtimes take it.

    Raises ValueError for a cycle.
    """
    seen: set[ir.Node] = set()
    for node in graph:
        if any(maker.graph is graph and maker not in seen for maker in _makers(node)):
            graph.sort()
            return
        seen.add(node)


def _makers(node: ir.Node) -> Iterator[ir.Node]:
    """The nodes that make what `node` reads, in the graphs inside it too."""
    read = list(node.inputs)
    for inner in inner_nodes(node.attributes):
        read += inner.inputs
    for value in read:
        maker = None if value is None else value.producer()
        if maker is not None:
            yield maker
