"""What is written down of an edge, why ops stay outside of dispatches, and which loops of several nodes are one."""

from __future__ import annotations

import pytest

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import dims_map
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.fusion.decision import Answer, Legal, WhyNot
from fuseline.passes.fusion.edge_records import Outcome, apart_records, arms_record, edge_record
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.loop_classes import loop_classes
from fuseline.passes.fusion.rule import unfusable
from tests.unit.passes.fusion.programs import Program

REFUSAL = WhyNot("recompute", "again and again", "n7", {"times": 3.0})


def _graph(p: Program) -> FusionGraph:
    return FusionGraph(p.function.body.block, ShapeAnalysis())


def _pair() -> FusionGraph:
    p = Program((4, 8))
    return _graph(p.done(p.reduce(p.unary(p.x[0]))))


@pytest.mark.parametrize(
    ("answer", "together", "verdict", "code", "detail", "at"),
    [
        (Legal({"ratio": 2.0}), True, "fused", "fused", "", ""),
        (REFUSAL, False, "missed", "recompute", "again and again", "n7"),
        (REFUSAL, True, "fused", "fused", "", ""),
        (Legal(), False, "superseded", "superseded", "", ""),
    ],
)
def test_the_last_word_on_an_edge(answer: Answer, together: bool, verdict: str, code: str, detail: str, at: str):
    assert isinstance(answer, Legal | WhyNot)
    first, second = _pair().nodes
    record = edge_record(first, second, Outcome("a-rule", answer), together=together)
    assert (record.rule, record.verdict, record.code, record.detail, record.at, record.arms) == (
        "a-rule",
        verdict,
        code,
        detail,
        at,
        False,
    )
    assert (record.producer, record.consumer) == (first.name, second.name)
    assert (record.producer_op, record.consumer_op) == ("elementwise", second.kind.value)
    assert (record.producer_nodes, record.consumer_nodes) == (first.nodes, second.nodes) and first.nodes != second.nodes
    assert record.numbers == dict(answer.numbers)


def test_bytes_that_are_saved_are_a_number_of_the_edge():
    first, second = _pair().nodes
    record = edge_record(first, second, Outcome("a-rule", Legal({"ratio": 2.0}), bytes_saved=128), together=True)
    assert record.numbers == {"ratio": 2.0, "bytes_saved": 128.0}


def test_arms():
    first, second = _pair().nodes
    fused = arms_record("arms", first, second)
    assert (fused.rule, fused.verdict, fused.code, fused.arms) == ("arms", "fused", "fused", True)
    assert (fused.detail, fused.at) == ("independent: arms of one dispatch", "")


def test_arms_that_are_kept_apart_are_told_once_with_the_first_reason():
    first, second = _pair().nodes
    one, two = Group.of(first), Group.of(second)
    other = WhyNot("forbidden", "for another reason", "n8")
    told = [("a-rule", one, two, REFUSAL), ("other-rule", one, two, other)]
    (missed,) = apart_records(told, {first: one, second: two})
    assert (missed.rule, missed.verdict, missed.code, missed.arms) == ("a-rule", "missed", "recompute", True)
    assert (missed.detail, missed.at) == ("again and again", "n7")
    assert (missed.producer, missed.consumer) == (first.name, second.name)
    assert apart_records(told, {first: one, second: one}) == []  # something else has joined them since


OUTSIDE = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = func.call @steps(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = func.call @host(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}
func.func private @steps(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
func.func private @host(tensor<4xf32>) -> tensor<4xf32> attributes {fuseline.host_op = "Unique"}"""


def test_loops_and_host_operators_stay_outside():
    module = parse_module(OUTSIDE, new_context())
    main = module.body.block.first_op
    assert main is not None
    steps, host = (unfusable(node) for node in FusionGraph(main.regions[0].block, ShapeAnalysis()).nodes)
    assert (steps.code, steps.detail) == ("loop", "@steps repeats steps of its own")
    assert (host.code, host.detail) == ("host-op", "func.call runs on the host")


def test_loops_that_walk_one_dimension_are_one():
    p = Program((4, 8))
    a = p.unary(p.x[0])
    first, turned, total = _graph(p.done(p.reduce(p.unary(a, permutation=(1, 0))))).nodes
    classes = loop_classes([first, turned, total])
    assert not classes.broken
    assert len({classes.of((node, loop)) for node in (first, turned, total) for loop in range(2)}) == 2
    assert classes.of((first, 0)) != classes.of((first, 1)) == classes.of((total, 0))
    assert classes.shared([first, turned, total]) == [classes.of((first, 1))]
    assert classes.along(total, classes.of((first, 0))) == [1]


def test_what_is_read_out_of_step_is_no_common_loop():
    p = Program((4, 4))
    a = p.unary(p.x[0])
    first, both = _graph(p.done(p.binary(a, a, dims_map(2, [1, 0])))).nodes
    classes = loop_classes([first, both])
    assert classes.shared([first, both]) == []
