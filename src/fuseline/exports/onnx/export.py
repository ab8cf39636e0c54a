"""From a model to the same model with its dispatches as functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fuseline.cache.key import model_name
from fuseline.compile_options import CompileOptions
from fuseline.exports.onnx.expansion import expanded
from fuseline.exports.onnx.functions import fused_model
from fuseline.exports.onnx.graph import Graph
from fuseline.exports.onnx.partition import Partition, partition_of
from fuseline.exports.onnx.placement import Placement, place
from fuseline.exports.onnx.result import FusedModel
from fuseline.exports.onnx.roles import KEPT, UNTYPED, roles_of
from fuseline.exports.onnx.source import opened
from fuseline.exports.onnx.summary import summary_of
from fuseline.frontends.onnx.model_file import OpenedModel

_SMALL_CONSTANT = 1024
"""Bytes of a constant that is repeated in each function that reads it, rather than handed to them."""


def fuse(source: Any, options: CompileOptions) -> FusedModel:
    """The model with each dispatch as a function. Raises FuselineError: E0501 for what is no ONNX model, and as a
    compile does."""
    model = opened(source)
    model, partition, names = expanded(model, partition_of(model, options), partial(partition_of, options=options))
    partition.record.model = model_name(source)
    return _exported(model, partition, names)


def _exported(model: OpenedModel, partition: Partition, names: Sequence[str]) -> FusedModel:
    proto = model.split.proto
    graph = Graph(proto.graph)
    roles = roles_of(proto, graph, partition.record)
    placement = _placement(graph, partition, roles)
    summary = summary_of(graph, placement, partition.record, roles, names)
    fused = fused_model(proto, graph, placement, partition.record, roles)
    return FusedModel(replace(model, split=replace(model.split, proto=fused)), partition.record, summary)


def _placement(graph: Graph, partition: Partition, roles: Mapping[int, str]) -> Placement:
    fixed = {number for number, role in roles.items() if role in KEPT}
    numbers = {node.name: number for number, node in enumerate(graph.nodes)}
    return place(
        graph,
        {numbers[name]: found for name, found in partition.homes().items() if numbers[name] not in fixed},
        repeatable=lambda number: partition.is_repeatable(graph.nodes[number].name),
        fixed=fixed,
        apart=[number for number, role in roles.items() if role == UNTYPED],
        small={number for number in range(len(graph.nodes)) if _is_small_constant(graph, number)},
    )


def _is_small_constant(graph: Graph, number: int) -> bool:
    return not graph.reads[number] and graph.nodes[number].ByteSize() <= _SMALL_CONSTANT
