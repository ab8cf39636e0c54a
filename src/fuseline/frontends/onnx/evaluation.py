"""Nodes whose inputs are all known and small are computed while reading: shape arithmetic, with sizes that may be symbolic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx.reference import ReferenceEvaluator

from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import Tensor, known
from fuseline.ir import dim as d

EVALUATED_ELEMENTS = 4096
"""Larger constants are left to constant folding, which weighs what they cost."""

_ON_SIZES: dict[str, Callable[[Any, Any], Any]] = {"Add": d.add, "Sub": d.sub, "Mul": d.mul, "Div": d.floor_div, "Max": d.maximum, "Min": d.minimum}


def evaluated(node: OnnxNode, emitted: Tensor) -> Tensor:
    """What `node` computes, if its inputs are known; else `emitted`. An op that was emitted for nothing is dead and is removed later."""
    inputs = node.present()
    if not inputs or any(t.array is None or t.array.size > EVALUATED_ELEMENTS for t in inputs):
        return emitted
    if any(t.array is not None and t.array.dtype == object for t in inputs):
        return _on_sizes(node, inputs, emitted)
    return _on_numbers(node, emitted)


def _on_sizes(node: OnnxNode, inputs: list[Tensor], emitted: Tensor) -> Tensor:
    operation = _ON_SIZES.get(node.op_type)
    arrays = [t.array for t in inputs if t.array is not None]
    if node.op_type in ("Cast", "Identity") and emitted.dtype.kind in "iu":
        return known(arrays[0], emitted.dtype)
    if operation is None or len(arrays) != 2:
        return emitted
    left, right = np.broadcast_arrays(*arrays)
    out = np.empty(left.shape, dtype=object)
    flat = [operation(_dim(a), _dim(b)) for a, b in zip(left.reshape(-1).tolist(), right.reshape(-1).tolist(), strict=True)]
    out.reshape(-1)[:] = flat
    return known(out, emitted.dtype)


def _dim(item: Any) -> d.Dim:
    return item if isinstance(item, d.Expr) else int(item)


def _on_numbers(node: OnnxNode, emitted: Tensor) -> Tensor:
    from fuseline.frontends.onnx.host_ops import single_node_model

    model = single_node_model(node, "" if node.source.domain == "ai.onnx" else node.source.domain, node.opset)
    feeds = {f"i{i}": t.numbers() for i, t in enumerate(node.inputs) if t is not None}
    with np.errstate(all="ignore"):
        out = ReferenceEvaluator(model).run(None, feeds)[0]  # pyright: ignore[reportArgumentType] - a list, for names None
    return known(np.asarray(out, emitted.dtype), emitted.dtype)
