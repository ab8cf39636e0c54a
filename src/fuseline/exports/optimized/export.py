"""From a model to its graph as plain ONNX with less to do."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from fuseline.errors import FuselineError
from fuseline.exports.onnx.source import opened
from fuseline.exports.optimized.optimize import rewrite
from fuseline.exports.optimized.result import OptimizedModel


def optimize(source: Any) -> OptimizedModel:
    """The model of a path, bytes or a proto (left as it is), rewritten. Raises FuselineError: E0501 for what is no ONNX
    model, E0101 to E0105 for a model that cannot be read."""
    found = opened(source)
    try:
        model = ir.from_proto(found.split.proto)
        found.split.put_back(model)
    except (ValueError, TypeError, KeyError, ir.serde.SerdeError) as error:
        raise FuselineError("E0105", f"the graph cannot be read: {error}", node=found.name) from error
    if found.folder is not None:
        for graph in model.graphs():
            ir.external_data.set_base_dir(graph, str(found.folder))
    summary = rewrite(model)
    external = any(isinstance(tensor, ir.ExternalTensor) for tensor in _tensors(model))
    return OptimizedModel(model, summary, external)


def _tensors(model: ir.Model) -> list[Any]:
    return [value.const_value for graph in model.graphs() for value in graph.initializers.values()]
