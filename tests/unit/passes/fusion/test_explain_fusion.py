"""What fusion would decide, as remarks: those of the partition, word for word, while the program stays as it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fuseline.ir.build import dims_map
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.text import print_module
from fuseline.passes.fusion.decision import Answer, NotApplicable, WhyNot
from fuseline.passes.fusion.explain_fusion import ExplainFusionPass, remark
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.rule import FusionRule, Merge, Shape
from fuseline.report.records import Decision
from fuseline.targets.target import Legality, Refusal

from .programs import Program


@pytest.mark.parametrize(
    ("rule", "code", "detail", "text"),
    [
        ("some-rule", "fused", "", "remark: [some-rule] fused"),
        ("some-rule", "multi-use", "read twice", "remark: [some-rule] multi-use: read twice"),
        ("row-chain", "fused", "why: so", "remark: [row-chain] fused: why: so"),
    ],
)
def test_a_decision_is_one_line(rule: str, code: str, detail: str, text: str):
    edge = {"producer": "a", "consumer": "b", "producer_op": "c.a", "consumer_op": "d.b"}
    assert remark(Decision(verdict="fused", rule=rule, code=code, detail=detail, **edge)) == text  # pyright: ignore[reportArgumentType]


def _chain() -> Program:
    p = Program((64, 64), (64, 64))
    return p.done(p.unary(p.matmul(p.x[0], p.x[1])))


def _rows() -> Program:
    p = Program((6, 5))
    e = p.unary(p.x[0])
    return p.done(p.binary(e, p.reduce(e), dims_map(2, [0])))


def _explained(p: Program, legal: Legality | None = None, **options: object) -> list[str]:
    """The notes of two runs, which must say the same; the program does not change."""
    before, notes = print_module(p.module), list[list[str]]()
    for _ in range(2):
        ctx: CompilerContext = new_context()
        ctx.legal = legal or ctx.legal
        ExplainFusionPass(**options).apply(ctx, p.module)  # pyright: ignore[reportArgumentType]
        notes.append(ctx.records.notes)
    assert print_module(p.module) == before and notes[0] == notes[1]
    return notes[0]


@pytest.mark.parametrize("make", [_chain, _rows])
def test_the_remarks_are_the_decisions_of_the_partition(make: Callable[[], Program]):
    found = _explained(make())
    assert found and sorted(found) == sorted(map(remark, make().partition(new_context().target).decisions))


def test_the_target_is_asked_too():
    def legal(candidate: object) -> Refusal | None:
        return Refusal("closed", "one op at a time") if len(candidate.members) > 1 else None  # pyright: ignore

    assert any("closed: one op at a time" in line for line in _explained(_chain(), legal))
    assert not any("closed" in line for line in _explained(_chain()))


class _Never(FusionRule):
    """Says of every merge that it is not wanted."""

    name = "never-mine"
    shape = Shape.SHARED

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        return WhyNot("unprofitable", f"{len(graph.nodes)} nodes", merge.consumer.root.name)


class _Absent(_Never):
    """Has nothing to say."""

    name = "absent"

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        return NotApplicable()


def _refused() -> Program:
    """A row that is spread over both sides of its loop, of more than stays in a cache: no rule here takes a merge of
    the two."""
    p = Program((700, 5, 300), (6, 5))
    return p.done(p.binary(p.x[0], p.moved(p.reduce(p.x[1], axis=0), [1], 700, 5, 300)))


def test_rules_from_outside_are_asked_as_well():
    found = _explained(_refused(), more_rules=(_Never(), _Absent()))
    assert "remark: [never-mine] unprofitable: 3 nodes" in found
    assert not any("absent" in line for line in found)


def test_every_function_is_explained():
    twice, once = _chain(), _chain()
    other = _rows().function
    other.detach()
    other.properties["sym_name"] = type(other.sym_name)("other")
    twice.module.body.block.add_op(other)
    assert len(_explained(twice)) == len(_explained(once)) + len(_explained(_rows()))
