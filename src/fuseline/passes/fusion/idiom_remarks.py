"""What the records say of idioms: which nodes are one, and which nearly are, so that they run as they are written."""

from __future__ import annotations

from collections.abc import Iterable

from fuseline.analysis.idioms import name_of
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
