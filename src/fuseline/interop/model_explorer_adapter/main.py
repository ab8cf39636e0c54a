"""The adapter: the viewer looks for a subclass of its `Adapter` in this module, so that its package
(ai-edge-model-explorer) is needed to import it, and by nothing else of fuseline."""

from __future__ import annotations

from typing import Any, ClassVar

from model_explorer import Adapter, AdapterMetadata, graph_builder  # pyright: ignore

from fuseline.report.records import CompileRecord, decode
from fuseline.report.viewers.model_explorer import graphs
from fuseline.runtime.artifact import read_artifact


class FuselineAdapter(Adapter):  # pyright: ignore[reportUntypedBaseClass]
    """Shows the dispatches of a compiled program."""

    metadata: ClassVar[Any] = AdapterMetadata(
        id="fuseline",
        name="fuseline dispatches",
        description="dispatches of a compiled program, and why ops were fused or not",
        fileExts=["fuse"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> dict[str, Any]:
        """The graph of the artifact at `model_path`. Raises FuselineError for a file that is none."""
        del settings
        records = read_artifact(model_path).records
        found = graphs(decode(records) if records else CompileRecord())
        return {"graphs": [_built(graph) for graph in found["graphs"]]}


def _built(graph: dict[str, Any]) -> Any:
    """The viewer's own values."""
    nodes = [
        graph_builder.GraphNode(
            id=node["id"],
            label=node["label"],
            namespace=node["namespace"],
            attrs=[graph_builder.KeyValue(**pair) for pair in node["attrs"]],
            incomingEdges=[graph_builder.IncomingEdge(**edge) for edge in node["incomingEdges"]],
        )
        for node in graph["nodes"]
    ]
    return graph_builder.Graph(id=graph["id"], nodes=nodes, groupNodeAttributes=graph["groupNodeAttributes"])
