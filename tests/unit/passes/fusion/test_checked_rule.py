"""A rule from outside is held to its word: what it answers, what it touches, and what the structure allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.ir.build import dims_map
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.checked_rule import checked
from fuseline.passes.fusion.decision import Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.rule import FusionRule, Merge, Shape
from fuseline.report.records import Decision

from .programs import TARGET, Program

Judge = Callable[[Merge, FusionGraph], Any]


def _rule(judge: Judge, how: Shape = Shape.SHARED) -> FusionRule:
    class Mine(FusionRule):
        name = "mine"
        shape = how

        def matches(self, merge: Merge, graph: FusionGraph) -> Any:
            return judge(merge, graph)

    return checked(Mine())


def _pair() -> Program:
    p = Program((64, 64))
    return p.done(p.unary(p.unary(p.x[0])))


def _decisions(p: Program, rule: FusionRule, target: TargetDescription = TARGET) -> list[Decision]:
    return p.partition(target, [rule]).decisions


def _any(value: Any) -> Any:
    return value


def _raise(problem: BaseException) -> Judge:
    def judge(merge: Merge, graph: FusionGraph) -> Any:
        raise problem

    return judge


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        (_raise(ZeroDivisionError("division by zero")), "it raised ZeroDivisionError: division by zero"),
        (_raise(KeyError("lost")), "it raised KeyError: 'lost'"),
        (_raise(SystemExit(3)), "it raised SystemExit: 3"),
        (lambda merge, graph: WhyNot("never", "no"), "it gave the reason 'never', which is none"),
        (lambda merge, graph: None, "it answered None"),
        (lambda merge, graph: True, "it answered True"),
        (lambda merge, graph: Legal, "it answered <class 'fuseline.passes.fusion.decision.Legal'>"),
        (
            lambda merge, graph: Legal({"factor": float("nan")}),
            "its numbers are {'factor': nan}, not finite numbers by name",
        ),
        (lambda merge, graph: Legal({_any(3): 2.0}), "its numbers are {3: 2.0}, not finite numbers by name"),
        (
            lambda merge, graph: Legal({"factor": _any("two")}),
            "its numbers are {'factor': 'two'}, not finite numbers by name",
        ),
        (lambda merge, graph: Legal(_any(3)), "its numbers are 3, not finite numbers by name"),
        (
            lambda merge, graph: WhyNot("no-rule", _any(3)),
            "it answered WhyNot(code='no-rule', detail=3, at='', numbers={}), whose detail and op are no texts",
        ),
        (
            lambda merge, graph: WhyNot("no-rule", "", _any(None)),
            "it answered WhyNot(code='no-rule', detail='', at=None, numbers={}), whose detail and op are no texts",
        ),
        (lambda merge, graph: merge.producer.members.clear(), "it changed the groups it was asked about"),
        (lambda merge, graph: merge.consumer.grid_loop_of.clear(), "it changed the groups it was asked about"),
        (
            lambda merge, graph: merge.consumer.inlined.add(merge.consumer.root),
            "it changed the groups it was asked about",
        ),
    ],
)
def test_nonsense_is_refused_with_the_rule_and_the_candidate(judge: Judge, words: str):
    p = _pair()
    first, second = FusionGraph(p.function.body.block, ShapeAnalysis()).nodes
    with pytest.raises(FuselineError) as caught:
        _decisions(p, _rule(judge))
    error = caught.value
    assert (error.code, error.node, error.message) == ("E0704", "mine", f"{words} at {first.name} -> {second.name}")
    assert error.hint is not None and error.hint.startswith(
        "matches() returns Legal(), WhyNot(code, detail, at), Forbid(code, detail, at) or NotApplicable()"
    )


def test_a_rule_is_given_the_candidate_and_the_graph():
    asked: list[tuple[Merge, FusionGraph]] = []
    p = _pair()
    _decisions(p, _rule(lambda merge, graph: asked.append((merge, graph)) or NotApplicable()))
    ((merge, graph),) = asked
    assert [merge.producer.root, merge.consumer.root] == graph.nodes


@pytest.mark.parametrize("answer", [WhyNot("no-rule", "no"), NotApplicable()])
def test_a_refusal_stands(answer: object):
    assert [d.code for d in _decisions(_pair(), _rule(lambda merge, graph: answer))] == ["no-rule"]


def test_what_is_legal_is_fused_under_the_name_of_the_rule():
    assert [(d.rule, d.code) for d in _decisions(_pair(), _rule(lambda merge, graph: Legal()))] == [("mine", "fused")]


ALWAYS: Judge = lambda merge, graph: Legal()  # noqa: E731


def _leaking() -> Program:
    p = Program((64, 64))
    first = p.unary(p.x[0])
    return p.done(first, p.unary(first, permutation=(1, 0)))


def _reduced() -> Program:
    p = Program((64, 64))
    return p.done(p.unary(p.reduce(p.x[0])))


def _chain() -> Program:
    p = Program((64, 64))
    return p.done(p.matmul(p.matmul(p.x[0], p.x[0]), p.x[0]))


@pytest.mark.parametrize(
    ("program", "shape", "target", "code"),
    [
        (_leaking, Shape.INLINE_PRODUCER, TARGET, "multi-use"),
        (_reduced, Shape.INLINE_PRODUCER, TARGET, "recompute"),
        (_chain, Shape.SHARED, TargetDescription("small", scratch_bytes_limit=64), "scratch"),
        (_chain, Shape.SHARED, TargetDescription("one root", roots_limit=1), "roots-limit"),
        (_pair, Shape.SHARED, TargetDescription("narrow", binding_limit=1), "binding-limit"),
    ],
)
def test_structure_is_looked_up_again(
    program: Callable[[], Program], shape: Shape, target: TargetDescription, code: str
):
    assert code in {d.code for d in _decisions(program(), _rule(ALWAYS, shape), target)}


def test_a_rule_cannot_make_a_cycle():
    p = Program((64, 64))
    first = p.unary(p.x[0])
    p.done(p.binary(first, p.unary(p.reduce(first, 0)), dims_map(2, [1])))
    nope = _rule(
        lambda merge, graph: WhyNot("no-rule", "") if merge.producer.reduces or merge.consumer.reduces else Legal()
    )
    assert ("structure", "cycle") in {(d.rule, d.code) for d in _decisions(p, nope)}
