"""Groups that are known by their halves: what they say is what the members say, before and after they are formed."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.passes.fusion.driver import partition
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.group_order import GroupOrder
from fuseline.passes.fusion.group_owners import GroupOwners
from fuseline.passes.fusion.joint_group import JointGroup
from fuseline.passes.fusion.merging import align, cut_behind, inline_into, merged
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.rule import builtin_rules
from fuseline.targets import create_target
from tests.graphs.program import Program

FACTS = ("size", "key", "root", "heavy", "reduces", "moves", "fusable", "blocked", "reads_elsewhere", "is_sequential")
SUMS = ("body_operations", "most_points", "root_points", "reducing_count", "placed_roots", "scratch_bytes", "streamed")


def _graph(rng: random.Random) -> FusionGraph:
    p = Program((8, 8), (8, 8))
    values: list[SSAValue] = list(p.x)
    for _ in range(24):
        one, other = rng.choice(values[-5:]), rng.choice(values[-5:])
        kind = rng.randrange(4)
        made = p.matmul(one, other) if kind == 0 else p.moved(one, (1, 0), 8, 8) if kind == 1 else p.add(one, other)
        values.append(made)
    return FusionGraph(p.done(values[-1], values[-6]).function.body.block, ShapeAnalysis())


def _same(group: Group) -> None:
    """A group says of itself what one says that is built of its members."""
    own = Group(group.members, group.grid, group.grid_loop_of, group.inlined)
    for fact in (*FACTS, *SUMS):
        assert getattr(group, fact) == getattr(own, fact), fact
    assert group.bindings() == own.bindings() and group.buffers() == own.buffers()
    assert group.member_set == own.member_set and list(group.results()) == list(own.results())
    for node in group.grid_loop_of:
        assert group.grid_loops(node) == own.grid_loops(node)
    assert [group.is_inlined(node) for node in group.members] == [own.is_inlined(node) for node in group.members]


def _same_border(group: Group) -> None:
    own, body = Group(group.members, group.grid, group.grid_loop_of, group.inlined).body, group.body
    assert list(body.producers()) == list(own.producers()) and list(body.consumers()) == list(own.consumers())
    assert body.leaving == own.leaving and body.inlined == own.inlined and body.grid_loop_of == own.grid_loop_of
    assert body.inputs == own.inputs and body.results == own.results


def _joined(rng: random.Random, producer: Group, consumer: Group) -> Group:
    forms: list[Callable[[], Group]] = [
        *[lambda: merged(producer, consumer, align(producer, consumer))] * 4,
        lambda: inline_into(producer, consumer),
        lambda: cut_behind(producer, consumer),
    ]
    return rng.choice(forms)()


@pytest.mark.parametrize("seed", range(20))
def test_a_group_says_what_its_members_say(seed: int):
    rng = random.Random(seed)
    groups = [Group.of(node) for node in _graph(rng).nodes]
    owners = GroupOwners(groups)
    order, alive = GroupOrder(groups, owners), set(groups)
    while True:
        ordered = sorted(alive, key=lambda group: group.key)
        pairs = [(a, b) for a in ordered for b in order.consumers(a) if order.between((a, b)) is None]
        if not pairs:
            break
        pair = rng.choice(pairs)
        _same(_joined(rng, *pair))
        new = _joined(rng, *pair)
        bindings = new.bindings()
        order.merge(pair, new)
        owners.own(new, new.form())
        alive = alive.difference(pair) | {new}
        assert bindings == new.bindings()
        _same(new)
        _same_border(new)
        assert all(owners[node] is group for group in alive for node in group.members) and len(owners) == len(
            [node for group in alive for node in group.members]
        )
    assert any(group.size > 3 for group in alive)


def test_a_group_that_became_part_of_another_is_of_no_use():
    nodes: list[Node] = _graph(random.Random(3)).nodes
    one, two = Group.of(nodes[0]), Group.of(nodes[0].readers[0].consumer)
    both = merged(one, two, align(one, two))
    both.form()
    third = Group.of(next(node for node in nodes if node not in both.member_set))
    merged(both, third, align(both, third)).form()
    with pytest.raises(AssertionError):
        _ = both.members
    with pytest.raises(AttributeError):
        _ = both.nothing  # pyright: ignore[reportAttributeAccessIssue]


def _pair() -> tuple[Program, Group, Group]:
    """A product over (8, 6), and what reads it turned over (6, 8)."""
    p = Program((8, 5), (5, 6))
    made = p.matmul(*p.x)
    nodes = FusionGraph(p.done(p.moved(made, (1, 0), 6, 8)).function.body.block, ShapeAnalysis()).nodes
    product, turned = (Group.of(node) for node in sorted(nodes, key=lambda node: node.position))
    return p, product, turned


def test_halves_keep_their_numbers_or_get_others():
    p, product, turned = _pair()
    both = JointGroup(product, turned, (6, 8), ({0: 1, 1: 0}, None))
    assert both.members == [product.root, turned.root] and both.grid == (6, 8) and both.inlined == set()
    assert both.grid_loop_of == {product.root: (1, 0, None), turned.root: (0, 1)}
    assert (both.grid_loops(product.root), both.grid_loops(turned.root)) == ((1, 0, None), (0, 1))
    assert both.root is product.root and both.size == 2 and both.heavy and not both.moves
    assert both.bindings() == 3 and {*both.buffers()} == {*p.x, turned.root.op.results[0]}
    assert both.form() in ({product.root}, {turned.root})
    assert both.halves is None and both.grid_loop_of == {product.root: (1, 0, None), turned.root: (0, 1)}
    plain = both.plain
    assert type(plain) is Group and (plain.grid, plain.grid_loop_of) == (both.grid, both.grid_loop_of)
    assert plain.bindings() == both.bindings() == 3


def test_a_half_that_is_read_in_place_has_no_loops_in_the_grid():
    _, product, turned = _pair()
    both = JointGroup(product, turned, (8, 6), (None, None), in_place=turned)
    assert both.inlined == {turned.root} and both.grid_loop_of == {product.root: (0, 1, None)}
    assert both.is_inlined(turned.root) and not both.is_inlined(product.root)
    assert both.inlines(turned) and not both.inlines(product)
    assert both.root is product.root and both.placed_roots == {product.root}
    both.form()
    assert both.inlined == {turned.root} and both.is_inlined(turned.root) and not both.inlines(turned)


def test_a_value_between_the_halves_is_bound_where_somebody_else_needs_it():
    p = Program((8, 6))
    value = p.unary(p.x[0])
    p.done(p.unary(value), value)
    first, second = FusionGraph(p.function.body.block, ShapeAnalysis()).nodes
    ordered = sorted((first, second), key=lambda node: node.position)
    one, two = (Group.of(node) for node in ordered)
    both = JointGroup(one, two, (8, 6))
    assert both.bindings() == 3 and len(list(both.results())) == 2
    both.form()
    assert both.bindings() == 3 and len(list(both.results())) == 2


def _lines_to_fuse(length: int) -> int:
    """How many lines of fusion's own code a chain takes, comprehensions round by round."""
    p = Program((8, 8), (8, 8))
    value = p.x[0]
    for _ in range(length):
        value = p.binary(value, p.x[1])
    graph = FusionGraph(p.done(value).function.body.block, ShapeAnalysis())
    rules, target = builtin_rules(), create_target("null", 2).description
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace if "fusion" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        found = partition(graph, rules, target)
    finally:
        sys.settrace(before)
    assert [group.size for group in found.groups] == [length]
    return count


def test_work_grows_as_the_group_does():
    short, long = _lines_to_fuse(50), _lines_to_fuse(200)
    assert long < 5 * short
