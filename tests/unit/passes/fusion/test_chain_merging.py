"""Chains that only the limit of roots keeps in pieces: cut into as few groups as have room, whatever lies between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import dims_map
from fuseline.ir.fuel import Decision as Spent
from fuseline.ir.fuel import Fuel
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.chain_cuts import CHAIN_CUTS
from fuseline.passes.fusion.driver import Partition, partition
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import align, merged
from fuseline.passes.fusion.plan import FusionPlan
from fuseline.passes.fusion.plan_constraints import PlanMatcher
from fuseline.passes.fusion.planned_driver import guided_partition
from fuseline.passes.fusion.rule import builtin_rules, count_roots
from fuseline.passes.fusion.rule_choice import JOINS
from fuseline.passes.fusion.starting_groups import StartingGroup
from tests.draws import RNG

from .programs import TARGET, Program
from .test_driver import shuffle

ROWS = 4096
SIZE = 16


def _limited(limit: int) -> TargetDescription:
    return replace(TARGET, roots_limit=limit)


def _products(count: int) -> Program:
    """Products of equal size, one behind the other."""
    p = Program((ROWS, SIZE), *[(SIZE, SIZE)] * count)
    value = p.x[0]
    for weights in p.x[1:]:
        value = p.matmul(value, weights)
    return p.done(value)


def _layers(seed: int, count: int) -> Program:
    """Products of sizes of their own, with what networks have between them: points, sums of rows, residuals."""
    rng = np.random.default_rng(seed)
    widths = [SIZE, *(int(n) for n in rng.choice([16, 24, 48], count))]
    p = Program((ROWS, SIZE), *pairwise(widths))
    value, seen = p.x[0], dict[int, SSAValue]()
    for weights, width in zip(p.x[1:], widths[1:], strict=True):
        value = p.matmul(value, weights)
        kind = rng.integers(4)
        if kind == 1:
            value = p.unary(value)
        elif kind == 2 and width in seen:
            value = p.binary(value, seen[width])
        elif kind == 3:
            value = p.binary(value, p.reduce(p.unary(value)), dims_map(2, [0]))
        seen[width] = value
    return p.done(value)


def _partition(p: Program, limit: int, joins: Sequence[str] = JOINS) -> Partition:
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    return partition(graph, builtin_rules(), _limited(limit), joins=joins)


def _roots(groups: Sequence[Group]) -> list[int]:
    return [count_roots(group) for group in sorted(groups, key=lambda group: group.members[0].position)]


def _signature(found: Partition) -> tuple[list[list[str]], list[tuple[str, ...]]]:
    words = [(d.producer, d.consumer, d.rule, d.verdict, d.code) for d in found.decisions]
    return sorted(sorted(node.name for node in group.members) for group in found.groups), words


def _is_legal(found: Partition, limit: int) -> bool:
    """Whether no group has too many roots, every node is in one group, and no path leads out of a group and back."""
    if max(map(count_roots, found.groups)) > limit:
        return False
    members = Counter(node for group in found.groups for node in group.members)
    position = dict[Group, int]()

    def depth(group: Group) -> int:
        if group not in position:
            position[group] = -1
            before = {found.group_of[r.producer] for n in group.members for r in n.reads if r.producer} - {group}
            depths = [depth(other) for other in before]
            if -1 in depths:
                return -1
            position[group] = max(depths, default=0) + 1
        return position[group]

    return set(members.values()) == {1} and all(depth(group) > 0 for group in found.groups)


@pytest.mark.parametrize("limit", [2, 3, 4, 8])
@pytest.mark.parametrize("_", range(4))
def test_a_chain_of_products_has_as_few_groups_as_have_room(limit: int, _: int):
    count = int(RNG.integers(1, 4 * limit))
    found = _partition(_products(count), limit)
    assert _is_legal(found, limit)
    assert len(found.groups) == -(-count // limit)


def _pairs(between: int, pairs: int = 3) -> Program:
    """Pairs of products with something wider inside of each than between two of them."""
    p = Program((ROWS, SIZE), *[(SIZE, between), (between, SIZE)] * pairs)
    value = p.x[0]
    for weights in p.x[1:]:
        value = p.matmul(value, weights)
    return p.done(value)


@pytest.mark.parametrize(("between", "roots"), [(SIZE + 8, [3, 3]), (4 * SIZE, [2, 2, 2])])
def test_the_middle_is_shared_out_where_that_stores_no_more(between: int, roots: list[int]):
    found = _partition(_pairs(between), 3)
    assert _roots(found.groups) == roots
    assert _roots(_partition(_pairs(between), 3, joins=()).groups) == [2, 2, 2]


def test_room_adds_up_over_groups_that_are_full():
    assert _roots(_partition(_pairs(SIZE + 4, 12), 8).groups) == [8, 8, 8]


@pytest.mark.parametrize("_", range(12))
def test_layers_never_have_more_groups_than_without(_: int):
    seed, count, limit = (int(RNG.integers(n, m)) for n, m in ((0, 1 << 16), (5, 22), (2, 7)))
    without = [join for join in JOINS if join != CHAIN_CUTS]
    found, before = _partition(_layers(seed, count), limit), _partition(_layers(seed, count), limit, without)
    assert _is_legal(found, limit)
    assert len(found.groups) <= len(before.groups)


@pytest.mark.parametrize("_", range(6))
def test_the_order_of_the_program_does_not_matter(_: int):
    seed, count, limit = (int(RNG.integers(n, m)) for n, m in ((0, 1 << 16), (5, 22), (2, 7)))
    first, second = _layers(seed, count), _layers(seed, count)
    shuffle(second, seed)
    assert _signature(_partition(first, limit)) == _signature(_partition(second, limit))


def test_what_is_cut_is_told_with_the_limit_and_what_is_joined_with_its_rule():
    decisions = _partition(_pairs(SIZE + 8), 3).decisions
    assert [(d.rule, d.code) for d in decisions if d.verdict == "missed"] == [("root-chain", "roots-limit")]
    assert {d.rule for d in decisions} == {"root-chain"}


def _start(p: Program, limit: int, taken: slice) -> Partition:
    """The partition where the products of `taken` are a region from before the round."""
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    group, *others = [Group.of(node) for node in sorted(graph.nodes, key=lambda node: node.position)[taken]]
    for other in others:
        pair = group, other
        group = merged(*pair, align(*pair)).plain
    return partition(graph, builtin_rules(), _limited(limit), start=[StartingGroup((group,))])


@pytest.mark.parametrize("_", range(4))
def test_a_region_from_before_the_round_stays_together(_: int):
    first = int(RNG.integers(0, 14))
    found = _start(_products(17), 4, slice(first, first + 3))
    region = sorted((node for node in found.group_of), key=lambda node: node.position)[first : first + 3]
    assert len({found.group_of[node] for node in region}) == 1
    assert _is_legal(found, 4)


@pytest.mark.parametrize("_", range(4))
def test_a_plan_is_never_cut_and_its_own_partition_comes_back(_: int):
    p, limit = _products(17), 4
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    nodes = sorted(graph.nodes, key=lambda node: node.position)
    first = int(RNG.integers(0, 14))
    forced = FusionPlan(force=(tuple(node.id for node in nodes[first : first + 3]),))

    def followed(plan: FusionPlan) -> Partition:
        return guided_partition(graph, builtin_rules(), _limited(limit), "default", PlanMatcher(plan).guide(graph))

    found = followed(forced)
    assert len({found.group_of[node] for node in nodes[first : first + 3]}) == 1
    free = partition(graph, builtin_rules(), _limited(limit))
    groups = tuple(tuple(node.id for node in group.members) for group in free.groups)
    assert _signature(followed(FusionPlan(groups=groups)))[0] == _signature(free)[0]


def test_a_cut_is_one_decision_that_takes_fuel():
    p = _pairs(SIZE + 8)

    def fused(limits: dict[str, int]) -> tuple[int, list[Spent]]:
        fuel = Fuel(limits)
        graph = FusionGraph(p.function.body.block, ShapeAnalysis(), fuel=fuel)
        return len(partition(graph, builtin_rules(), _limited(3)).groups), fuel.spent

    groups, spent = fused({})
    (cut,) = [decision for decision in spent if decision.what == CHAIN_CUTS]
    assert len(set(cut.ops)) == 4
    assert (groups, fused({"fusion": cut.number})[0], fused({"fusion": cut.number + 1})[0]) == (2, 3, 2)


def test_one_root_in_a_dispatch_is_no_chain():
    assert len(_partition(_products(5), 1).groups) == 5
