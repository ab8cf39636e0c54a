"""The model that is exported, as it was read: every node with a name of its own, dispatches of an earlier export taken
apart."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from fuseline.errors import FuselineError
from fuseline.exports.onnx.acyclic import in_order
from fuseline.exports.onnx.graph import names_read
from fuseline.exports.onnx.inlinable import require_inlinable
from fuseline.frontends.onnx.dispatch_functions import without_dispatch_functions
from fuseline.frontends.onnx.model_file import OpenedModel, load_model, open_model
from fuseline.frontends.onnx.plain_protos import dense_tensor, repeated_constants
from fuseline.frontends.onnx.protos import nodes
from fuseline.frontends.onnx.weights_in_place import split_bytes

PREFIX = "fuseline."
"""Keys of metadata that are ours."""

MOST_BYTES = (1 << 31) - (1 << 24)
"""What a model of one file may take: protobuf ends at 2 GiB, and other tools add to a model."""

SOURCE = "source"
"""Metadata of a node of a body: the node that was in its place. It stays where a model is exported again."""


def opened(source: Any) -> OpenedModel:
    """The model of a path, bytes or a proto, which is left as it is. Raises FuselineError: E0501 for what is no ONNX
    model (an artifact, MLIR text), E0101 to E0105 for a model that cannot be read, E0106 for functions that onnxruntime
    cannot inline."""
    if isinstance(source, Path) and source.suffix == ".mlir":
        raise FuselineError("E0501", "fuse needs an ONNX model", node=str(source), hint="give the .onnx file")
    found = _light(open_model(source))
    load_model(found)  # whatever is wrong with it is said of the model as it is
    proto = onnx.ModelProto()
    proto.CopyFrom(without_dispatch_functions(found.split.proto))
    require_inlinable(proto)
    _make_dense(proto.graph)
    _drop_repeated(proto.graph)
    _put_in_order(proto.graph)
    name_nodes(proto.graph.node)
    _forget(proto)
    return replace(found, split=replace(found.split, proto=proto))


def _light(model: OpenedModel) -> OpenedModel:
    """A model that was given in memory, its large weights apart, as those of a file are."""
    if model.split.where or model.folder is not None or model.split.proto.ByteSize() > MOST_BYTES:
        return model
    return replace(model, split=split_bytes(model.split.proto.SerializeToString()) or model.split)


def _make_dense(graph: onnx.GraphProto) -> None:
    """Initializers that are sparse become dense: ONNX's checker knows no type of a sparse one in a function that reads
    it."""
    graph.initializer.extend(dense_tensor(tensor, tensor.values.name) for tensor in graph.sparse_initializer)
    del graph.sparse_initializer[:]


def name_nodes(nodes: Iterable[onnx.NodeProto]) -> None:
    """Give each node of a graph a name that no other has: its own where it is the first of it, else one made of its
    operator and place, as reports have it."""
    known = list(nodes)
    owners: dict[str, int] = {}
    for index, node in enumerate(known):
        owners.setdefault(node.name, index)
    for index, node in enumerate(known):
        if not node.name or owners[node.name] != index:
            node.name = _unused(node.name or f"{node.op_type}_{index}", owners)
            owners[node.name] = index


def _unused(stem: str, taken: Container[str]) -> str:
    name, number = stem, 0
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    return name


def _put_in_order(graph: onnx.GraphProto) -> None:
    """Sort nodes that stand before what they read; those in order stay as they are."""
    nodes = list(graph.node)
    maker = {name: number for number, node in enumerate(nodes) for name in node.output if name}
    sources = {number: {maker[name] for name in names_read(node) if name in maker} for number, node in enumerate(nodes)}
    order = in_order(sources, {number: number for number in sources})
    if order != list(range(len(nodes))):
        ordered = [_copy(nodes[number]) for number in order]
        del graph.node[:]
        graph.node.extend(ordered)


def _drop_repeated(graph: onnx.GraphProto) -> None:
    for number in reversed(repeated_constants(graph)):
        del graph.node[number]


def _copy(node: onnx.NodeProto) -> onnx.NodeProto:
    out = onnx.NodeProto()
    out.CopyFrom(node)
    return out


def _forget(proto: onnx.ModelProto) -> None:
    """Drop what an earlier export said of the model and its nodes."""
    for holder in (proto, *nodes(proto)):
        kept = [
            entry for entry in holder.metadata_props if entry.key == PREFIX + SOURCE or not entry.key.startswith(PREFIX)
        ]
        if len(kept) < len(holder.metadata_props):
            del holder.metadata_props[:]
            holder.metadata_props.extend(kept)
