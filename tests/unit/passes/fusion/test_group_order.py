"""The quotient graph: what it remembers of neighbours holds after any merges."""

from __future__ import annotations

import random

from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.group_order import GroupOrder
from fuseline.passes.fusion.merging import joined
from fuseline.passes.fusion.node import Node

from .programs import Program


def _graph(rng: random.Random) -> FusionGraph:
    p = Program((8, 8), (8, 8))
    values: list[SSAValue] = list(p.x)
    for _ in range(24):
        values.append(p.binary(rng.choice(values[-5:]), rng.choice(values[-5:])))
    return FusionGraph(p.done(values[-1]).function.body.block, ShapeAnalysis())


def _neighbours(group: Group, group_of: dict[Node, Group]) -> tuple[set[Group], set[Group]]:
    before = {group_of[read.producer] for node in group.members for read in node.reads if read.producer is not None}
    after = {group_of[read.consumer] for node in group.members for read in node.readers}
    return before - {group}, after - {group}


def test_neighbours_and_places_hold_after_merges():
    for seed in range(20):
        rng = random.Random(seed)
        graph = _graph(rng)
        group_of = {node: Group.of(node) for node in graph.nodes}
        order = GroupOrder(group_of.values(), group_of)
        for _ in range(15):
            alive = list(dict.fromkeys(group_of.values()))
            for group in alive:
                before, after = _neighbours(group, group_of)
                assert set(order.producers(group)) == before
                assert set(order.consumers(group)) == after
                assert all(order.position[other] < order.position[group] for other in before)
            pairs = [(a, b) for a in alive for b in order.consumers(a) if order.between((a, b)) is None]
            if not pairs:
                break
            pair = rng.choice(pairs)
            new = joined(pair)
            order.merge(pair, new)
            group_of.update(dict.fromkeys(new.members, new))
