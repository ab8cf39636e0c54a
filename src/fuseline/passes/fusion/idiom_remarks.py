"""What the records say of idioms: which nodes are one, and which nearly are, so that they run as they are written."""

from __future__ import annotations

from collections.abc import Iterable

from fuseline.analysis.idioms import name_of
from fuseline.analysis.near_softmax import near_online_softmaxes
from fuseline.analysis.structured import Kind
from fuseline.passes.fusion.driver import Partition
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.node import Node
from fuseline.report.records import OpRemark

IDIOM = "idiom"
"""What stands for a rule in these remarks."""


def idiom_name(node: Node) -> str:
    """The idiom that a node is, empty for none."""
    return name_of(node.idiom) if node.idiom is not None else ""


def near_idiom_remarks(nodes: Iterable[Node]) -> list[OpRemark]:
    """A remark for each node that is nearly an idiom: `near-scan` and the like, with what is missing."""
    near = [(node, node.near_idiom) for node in nodes]
    return [
        OpRemark(rule=IDIOM, code=f"near-{found.name}", op=node.name, detail=found.missing, nodes=node.nodes)
        for node, found in near
        if found is not None
    ]


def near_stream_remarks(graph: FusionGraph, result: Partition) -> list[OpRemark]:
    """A remark for each softmax that lies in another group than the product behind it, and that no target could
    stream: its weights exist as a whole."""
    found: list[OpRemark] = []
    streaming = {node for stream in result.streams for node in stream.reductions}
    rest = [node.op for node in graph.nodes if node.kind is Kind.REDUCTION and node not in streaming]
    for near in near_online_softmaxes(rest):
        maximum, product = graph.node_of(near.maximum), graph.node_of(near.product)
        if maximum is not None and product is not None and result.group_of[maximum] is not result.group_of[product]:
            code, detail = "near-online-softmax", f"{near.missing} (before {product.name})"
            found.append(OpRemark(rule=IDIOM, code=code, op=maximum.name, detail=detail, nodes=maximum.nodes))
    return found
