"""The order of regions: each behind what it reads, and an internal error where there is none."""

from __future__ import annotations

import pytest

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.passes.dispatch.region_order import ordered_regions
from fuseline.passes.fusion.driver import Partition, partition
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import joined
from fuseline.passes.fusion.rule import builtin_rules
from tests.unit.passes.fusion.programs import TARGET, Program


def _chain() -> tuple[Program, FusionGraph]:
    p = Program((4, 8), (8, 8))
    p.done(p.unary(p.matmul(p.unary(p.x[0]), p.x[1])))
    return p, FusionGraph(p.function.body.block, ShapeAnalysis())


def test_every_region_comes_behind_what_it_reads() -> None:
    p, graph = _chain()
    regions = ordered_regions(p.function.body.block, partition(graph, builtin_rules(), TARGET), graph.shapes)
    groups = [region for region in regions if isinstance(region, Group)]
    places = {node: place for place, group in enumerate(groups) for node in group.members}
    assert set(places) == set(graph.nodes)
    assert all(
        places[read.producer] <= places[node] for node in places for read in node.reads if read.producer is not None
    )
    assert all(region.name != "func.return" for region in regions if not isinstance(region, Group))


def test_groups_that_wait_for_each_other_have_no_order() -> None:
    p, graph = _chain()
    first, second, third = sorted(graph.nodes, key=lambda node: node.position)
    around, between = joined([Group.of(first), Group.of(third)]), Group.of(second)
    broken = Partition([around, between], {first: around, second: between, third: around}, [])
    with pytest.raises(FuselineError, match="the partition has a cycle") as error:
        ordered_regions(p.function.body.block, broken, graph.shapes)
    assert error.value.code == "E0901"
