"""The nodes of an ONNX file as reports draw them: names as records have them, operators, and who feeds whom."""

from __future__ import annotations

from pathlib import Path

import onnx

from fuseline.frontends.onnx.protos import label_of
from fuseline.report.page.inputs import SourceNode


def source_nodes(model: Path) -> list[SourceNode]:
    """The nodes of the main graph in order; none for what is no ONNX file. Weights are not read."""
    if model.suffix != ".onnx":
        return []
    graph = onnx.load(model, load_external_data=False).graph
    maker = {name: number for number, node in enumerate(graph.node) for name in node.output if name}
    return [
        SourceNode(
            label_of(node, number), node.op_type, tuple(dict.fromkeys(maker[i] for i in node.input if i in maker))
        )
        for number, node in enumerate(graph.node)
    ]
