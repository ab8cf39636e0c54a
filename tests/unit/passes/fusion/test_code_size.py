"""The budget of code: what is counted, and what is refused for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.code_size import BORDERED, operations, over_limit
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group

from .programs import TARGET, Program


def chain(length: int) -> Program:
    p = Program((8, 8))
    y = p.x[0]
    for _ in range(length):
        y = p.unary(y)
    return p.done(y)


def groups(p: Program, target: TargetDescription) -> list[int]:
    """The operations of each group of the partition."""
    return [operations(group, limit=1 << 30) for group in p.partition(target).groups]


def test_a_chain_is_cut_where_it_would_be_too_much():
    whole = sum(groups(chain(12), TARGET))
    assert len(groups(chain(12), TARGET)) == 1
    limit = whole // 3
    cut = groups(chain(12), replace(TARGET, code_limit=limit))
    assert len(cut) >= 3
    assert max(cut) <= limit
    assert ("missed", "code-limit") in {
        (d.verdict, d.code) for d in chain(12).partition(replace(TARGET, code_limit=limit)).decisions
    }


def test_no_limit():
    assert len(groups(chain(12), replace(TARGET, code_limit=0))) == 1


def test_an_op_alone_is_never_refused():
    assert len(groups(chain(5), replace(TARGET, code_limit=1))) == 5


@pytest.mark.parametrize("length", [3, 6])
def test_readers_at_one_point_share_an_evaluation(length: int):
    """Diamonds of elementwise ops are linear: both sides ask for the same element."""
    p = Program((8, 8))
    y = p.x[0]
    for _ in range(length):
        y = p.binary(p.unary(y), p.unary(y))
    (count,) = groups(p.done(y), TARGET)
    assert count <= 3 * 21 * length


def test_a_border_along_the_lanes_is_met_twice():
    """Once in runs of lanes and once lane by lane; lanes that are apart stay apart, so that a second border costs no
    more evaluations."""

    def count(borders: int) -> int:
        p = Program((8, 32))
        y = p.unary(p.x[0])
        for _ in range(borders):
            y = p.pad(y, (0, 1), (0, 1))
        p.done(p.unary(y))
        graph = FusionGraph(p.function.body.block, ShapeAnalysis())
        nodes = sorted(graph.nodes, key=lambda node: node.position)
        group = Group(nodes, tuple(nodes[-1].loops), {nodes[-1]: (0, 1)}, set(nodes[:-1]))
        return operations(group, limit=1 << 30)

    none, one, two = count(0), count(1), count(2)
    exp = none // 2
    assert one == none + BORDERED[Kind.PAD] + exp
    assert two == one + 2 * BORDERED[Kind.PAD] + exp


def test_what_came_out_too_long_has_a_limit_of_its_own():
    p = chain(3)
    nodes = sorted(FusionGraph(p.function.body.block, ShapeAnalysis()).nodes, key=lambda node: node.position)
    group = Group(nodes, tuple(nodes[-1].loops), {nodes[-1]: (0, 1)}, set(nodes[:-1]))
    count = operations(group, 1 << 30)
    unlimited = replace(TARGET, code_limit=0)
    assert over_limit(group, unlimited) is over_limit(group, replace(TARGET, code_limit=count)) is None
    assert over_limit(group, unlimited, {"another": 1}) is over_limit(group, unlimited, {nodes[0].name: count}) is None
    for target in (unlimited, replace(TARGET, code_limit=count)):
        refusal = over_limit(group, target, {nodes[0].name: count - 1, nodes[1].name: count + 5})
        assert refusal is not None and (refusal.code, refusal.at) == ("code-limit", group.root.name)
        assert refusal.detail == (
            f"about {count} operations or more, the kernel of more than {count - 1} came out too long"
        )
    assert over_limit(Group.of(nodes[0]), replace(TARGET, code_limit=1)) is None
