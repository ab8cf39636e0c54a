"""Types and sizes of a graph's values, as onnx infers them; large weights stay where they are."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import onnx
import onnx_ir as ir

SMALL = 1 << 12
"""Bytes of a weight whose content inference may need: sizes and axes."""


def infer(model: ir.Model) -> None:
    """Give the values of the main graph their types and sizes. Where inference fails they stay unknown, and rewrites
    say so."""
    with _without_weights(model.graph):
        proto = ir.to_proto(model)
    try:
        found = onnx.shape_inference.infer_shapes(proto, check_type=False, strict_mode=False, data_prop=True)
    except Exception:  # noqa: BLE001 - onnx raises classes of its own, without a common base
        return
    values = {out.name: out for node in model.graph for out in node.outputs}
    for info in (*found.graph.value_info, *found.graph.output):
        value = values.get(info.name)
        if value is not None and info.HasField("type"):
            ir.serde.deserialize_value_info_proto(info, value)


@contextmanager
def _without_weights(graph: ir.Graph) -> Generator[None]:
    """Large initializers as inputs, for so long."""
    count, held = len(graph.inputs), list(graph.initializers.items())
    for name, value in held:
        if value.const_value is not None and value.const_value.nbytes > SMALL and not value.is_graph_input():
            graph.initializers.pop(name)
            graph.inputs.append(value)
    try:
        yield
    finally:
        del graph.inputs[count:]
        graph.initializers.clear()
        for name, value in held:
            graph.initializers[name] = value
