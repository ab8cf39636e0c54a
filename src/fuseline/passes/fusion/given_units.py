"""Ops that the program says are one unit (`iree_linalg_ext.custom_op`): one dispatch, whatever it costs, where that is
legal.

The function names the source nodes of such units (`fuseline.units`); an op of one has that name among its own. What
passes have made of it still has. Others may join, as by default.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.func import FuncOp

from fuseline.analysis.disjoint_sets import DisjointSets
from fuseline.ir.units import units_of
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.plan_constraints import PlanConstraints, PlannedSet


def given_units(function: FuncOp, graph: FusionGraph) -> PlanConstraints | None:
    """The units of `function` as sets that `graph` is partitioned by; None where there are none."""
    sets = [
        PlannedSet(unit, nodes, extendable=True, optional=True)
        for unit in units_of(function)
        for nodes in _connected([node for node in graph.nodes if node.fusable and unit in node.nodes])
    ]
    return PlanConstraints(tuple(sets)) if sets else None


def _connected(nodes: list[Node]) -> Iterable[tuple[Node, ...]]:
    """Those of `nodes` that read each other, two or more: a unit that is called twice is two."""
    inside = set(nodes)
    edges = [(node, read.consumer) for node in nodes for read in node.readers if read.consumer in inside]
    classes, found = DisjointSets[Node](edges), dict[Node, list[Node]]()
    for node in nodes:
        found.setdefault(classes.of(node), []).append(node)
    return [tuple(part) for part in found.values() if len(part) > 1]
