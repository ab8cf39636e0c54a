"""The driver: the partition does not depend on order or names, ids are canonical, every edge has a record."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import dims_map
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.decision import Answer, Legal
from fuseline.passes.fusion.driver import partition
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.rule import FusionRule, Merge, builtin_rules, order_rules

from .programs import Program

Recipe = list[tuple[int, int, int]]


def _build(recipe: Recipe) -> Program:
    p = Program((32, 32), (32, 32))
    values: list[SSAValue] = list(p.x)
    for what, a, b in recipe:
        left, right = values[a % len(values)], values[b % len(values)]
        makers = (
            lambda left=left: p.unary(left),
            lambda left=left, right=right: p.binary(left, right),
            lambda left=left, right=right: p.matmul(left, right),
            lambda left=left, right=right: p.binary(left, p.reduce(right), dims_map(2, [0])),
            lambda left=left: p.unary(left, permutation=(1, 0)),
        )
        values.append(makers[what % len(makers)]())
    return p.done(values[-1])


def shuffle(p: Program, seed: int) -> None:
    """Write the same program in another topological order, with other names."""
    block = p.function.body.block
    ops = list(block.ops)
    last = ops.pop()
    done: set[object] = set()
    rng = random.Random(seed)
    order = []
    waiting = list(ops)
    while waiting:
        ready = [
            op
            for op in waiting
            if all(o.owner is block or o.owner in done for o in op.operands) and _captures_ready(op, done, block)
        ]
        op = rng.choice(ready)
        waiting.remove(op)
        order.append(op)
        done.add(op)
    for op in [*order, last]:
        op.detach()
        block.add_op(op)
        for result in op.results:
            result.name_hint = f"v{rng.randrange(1000)}"


def _captures_ready(op: object, done: set[object], block: object) -> bool:
    from fuseline.analysis.structured import captured

    return all(value.owner is block or value.owner in done for value in captured(op))  # pyright: ignore[reportArgumentType]


def _signature(p: Program) -> list[list[str]]:
    return sorted(sorted(node.name for node in group.members) for group in p.partition().groups)


recipes = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 20), st.integers(0, 20)), min_size=2, max_size=9)


@settings(max_examples=25, deadline=None)
@given(recipes, st.integers(0, 1 << 16))
def test_order_and_names_do_not_matter(recipe: Recipe, seed: int):
    first, second = _build(recipe), _build(recipe)
    shuffle(second, seed)
    second.module.verify()
    assert _signature(first) == _signature(second)


@settings(max_examples=15, deadline=None)
@given(recipes)
def test_every_edge_has_exactly_one_record(recipe: Recipe):
    p = _build(recipe)
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    edges = {
        (read.producer.name, node.name) for node in graph.nodes for read in node.reads if read.producer is not None
    }
    records = [(d.producer, d.consumer) for d in p.partition().decisions if not d.arms]
    assert sorted(records) == sorted(edges)


def test_equal_twins_get_different_ids_and_the_fingerprint_ignores_order():
    def twins(flip: bool) -> Program:
        p = Program((16, 16))
        a, b = p.unary(p.x[0]), p.unary(p.x[0])
        return p.done(p.binary(*((b, a) if flip else (a, b))))

    graphs = [FusionGraph(twins(flip).function.body.block, ShapeAnalysis()) for flip in (False, True)]
    assert len({node.id for node in graphs[0].nodes}) == 3
    assert graphs[0].fingerprint() == graphs[1].fingerprint()


def test_rules_come_after_those_they_name():
    names = [rule.name for rule in order_rules(builtin_rules())]
    for rule in builtin_rules():
        assert all(names.index(other) < names.index(rule.name) for other in rule.after)


def test_rules_are_asked_once_a_candidate_could_be_next():
    """A chain of equal ops: what is merged in between takes the candidates before it away, and nobody asked about
    them."""
    asked: list[tuple[str, str]] = []

    class Counting(FusionRule):
        name = "counting"

        def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
            del graph
            asked.append((merge.producer.key, merge.consumer.key))
            return Legal()

    p = Program((64, 64))
    value = p.x[0]
    for _ in range(20):
        value = p.unary(value)
    graph = FusionGraph(p.done(value).function.body.block, ShapeAnalysis())
    result = partition(graph, [Counting()], TargetDescription("null", threads=2))
    assert len(result.groups) == 1
    assert len(asked) == len(set(asked)) <= 2 * len(graph.nodes)
    assert len(result.decisions) == len(graph.nodes) - 1
