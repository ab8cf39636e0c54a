"""What it costs that a root evaluates what it reads on the way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.ir import SSAValue

from fuseline.analysis.image_strips import UNROLLED_TAPS
from fuseline.ir.build import dims_map
from fuseline.ir.costs import ASSUMED_SIZE, MachineCosts
from fuseline.passes.fusion.decision import Legal, WhyNot
from fuseline.passes.fusion.rule import Merge
from fuseline.passes.fusion.rules.read_in_place import ReadInPlace
from tests.draws import RNG

from .programs import TARGET, Program
from .rule_programs import exp_and_product, exp_and_window, graph_of


def test_a_root_evaluates_what_it_reads_for_each_block_of_its_result():
    """As often as there are blocks of 48 columns, and is told how long that takes beyond once."""
    graph, (exp, product) = graph_of(exp_and_product())
    answer = ReadInPlace().matches(Merge(exp, product, TARGET), graph)
    assert isinstance(answer, Legal) and list(answer.numbers) == ["evaluation_ns"]
    (view, chain) = product.root.structured, {exp.root.op}
    assert view is not None
    found = graph.prologues.through(view, 0, graph.prologues.chain(view, 0, chain))
    once = found.operations * TARGET.costs.operation_ns
    assert found.kind == "packed"
    assert answer.numbers["evaluation_ns"] == pytest.approx(
        64 * 32 * (found.recompute * (once + TARGET.costs.packing_ns) - once)
    )


def test_rows_that_lie_across_memory_cost_what_gathering_does(monkeypatch: pytest.MonkeyPatch):
    """The same product of the operand as stored and of its transpose, where there is no box of its rows: the difference
    is one element's price."""
    monkeypatch.setattr("fuseline.analysis.prologue.box_beside_packed", lambda *_: None)
    answers: list[Legal] = []
    for axes in ([0, 2], [2, 0]):
        p = Program([(40, None), (None, 40)][axes[0] // 2], (None, 48))
        maps = [dims_map(3, axes), dims_map(3, [2, 1]), dims_map(3, [0, 1])]
        p.done(p.multiply_add(p.unary(p.x[0]), p.x[1], p.zeros(40, 48), maps, "ppr"))
        graph, (exp, product) = graph_of(p)
        answer = ReadInPlace().matches(Merge(exp, product, TARGET), graph)
        assert isinstance(answer, Legal)
        answers.append(answer)
    along, across = (answer.numbers["evaluation_ns"] for answer in answers)
    assert across - along == pytest.approx(40 * ASSUMED_SIZE * (TARGET.costs.gathering_ns - TARGET.costs.packing_ns))


def test_the_blocks_are_those_of_the_target():
    """A product of 4 blocks of 64 columns, or 2 of 128."""
    p = Program((64, 32), (32, 256))
    p.done(p.matmul(p.unary(p.x[0]), p.x[1]))
    wide = replace(TARGET, costs=MachineCosts(block_uses=128))
    graph, (exp, product) = graph_of(p)
    numbers: list[float] = []
    for target in (TARGET, wide):
        answer = ReadInPlace().matches(Merge(exp, product, target), graph)
        assert isinstance(answer, Legal)
        numbers.append(answer.numbers["evaluation_ns"])
    assert numbers[0] > numbers[1] > 0


def test_a_window_evaluates_a_line_of_what_it_reads():
    """Each element once: what is told is what putting it into scratch takes."""
    graph, (exp, window) = graph_of(exp_and_window())
    answer = ReadInPlace().matches(Merge(exp, window, TARGET), graph)
    assert isinstance(answer, Legal)
    assert answer.numbers["evaluation_ns"] == pytest.approx(32 * 16 * TARGET.costs.packing_ns)


def test_a_window_of_many_taps_does_not_evaluate_what_it_reads():
    graph, (exp, window) = graph_of(exp_and_window(UNROLLED_TAPS + 1))
    answer = ReadInPlace().matches(Merge(exp, window, TARGET), graph)
    assert isinstance(answer, WhyNot)
    assert (answer.code, answer.at, answer.numbers) == ("recompute", window.root.name, {})
    assert answer.detail


@pytest.mark.parametrize("parts", [2, 3, 4])
def test_parts_of_rows_are_priced_as_the_rows_are(parts: int):
    """A product reads rows of parts that are computed apart: an element takes what its own part does."""
    rows, length, depth = int(RNG.integers(32, 128)), 16 * int(RNG.integers(1, 5)), int(RNG.integers(1, 5))

    def computed(p: Program, value: SSAValue) -> SSAValue:
        for _ in range(depth):
            value = p.unary(value)
        return value

    told: list[float] = []
    for cut in (1, parts):
        p = Program((rows, parts * length), (parts * length, 64))
        size = parts * length // cut
        made = [computed(p, p.columns(p.x[0], number * size, size)) for number in range(cut)]
        p.done(p.matmul(p.concat(*made) if cut > 1 else made[0], p.x[1]))
        decisions = p.partition().decisions
        assert {d.verdict for d in decisions} == {"fused"}
        told.append(sum(d.numbers.get("evaluation_ns", 0.0) for d in decisions))
    assert told[1] == pytest.approx(told[0])
