"""How far nodes lie behind the arguments, counted in roots: of what an op reads, the deepest is made last.

x ──> conv ──> conv ──> add        depths 1, 2, 2
 └──> conv ─────────────┘          depth 1
"""

from __future__ import annotations

from collections.abc import Iterable

from fuseline.passes.fusion.node import Node


def root_depths(nodes: Iterable[Node]) -> dict[Node, int]:
    """The roots on the longest path to each of `nodes`, itself included; they are in an order of dependence."""
    depths = dict[Node, int]()
    for node in nodes:
        before = [*node.sized_by, *(read.producer for read in node.reads if read.producer is not None)]
        depths[node] = max((depths[other] for other in before), default=0) + node.heavy
    return depths
