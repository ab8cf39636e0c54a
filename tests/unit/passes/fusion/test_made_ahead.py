"""Small producers that each thread makes ahead of the rows that read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fuseline.analysis.made_ahead import MOST_BYTES, REPEATS
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import dims_map
from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.profit import EVALUATION_NS
from fuseline.passes.fusion.rule import Merge
from fuseline.passes.fusion.rules.made_ahead import MadeAhead
from tests.draws import RNG
from tests.graphs.program import Size

from .programs import TARGET, Program


def spread(rows: Size, columns: Size, axis: int = 1) -> Program:
    p = Program((rows, columns), ((rows, columns)[axis],))
    return p.done(p.binary(p.x[0], p.unary(p.x[1]), dims_map(2, [axis])))


def _answer(p: Program, threads: int = 1) -> Answer:
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    nodes = sorted(graph.nodes, key=lambda node: node.position)
    merge = Merge(Group.of(nodes[0]), Group.of(nodes[-1]), replace(TARGET, threads=threads))
    return MadeAhead().matches(merge, graph)


@pytest.mark.parametrize("threads", [1, 2, 6])
def test_a_row_that_is_read_again_and_again_is_made_once(threads: int):
    """It costs nothing beside: other threads would wait for it."""
    columns = int(RNG.integers(2, MOST_BYTES // 4 + 1))
    assert _answer(spread(REPEATS * threads, columns), threads) == Legal({EVALUATION_NS: 0.0})
    assert _answer(spread("n", columns), threads) == Legal({EVALUATION_NS: 0.0})


def _escaping() -> Program:
    p = Program((50, 40), (40,))
    row = p.unary(p.x[1])
    return p.done(row, p.binary(p.x[0], row, dims_map(2, [1])))


def _into_product() -> Program:
    p = Program((50, 40), (40,), (40, 8), constants=[2])
    return p.done(p.matmul(p.binary(p.x[0], p.unary(p.x[1]), dims_map(2, [1])), p.x[2]))


def _of_product() -> Program:
    p = Program((1, 8), (8, 40), (50, 40))
    row = p.matmul(p.x[0], p.x[1])
    return p.done(p.binary(p.x[2], row, dims_map(2, [None, 1])))


@pytest.mark.parametrize(
    "made",
    [
        lambda: spread(REPEATS - 1, 40),
        lambda: spread(50, MOST_BYTES // 4 + 1),
        lambda: spread(50, "n"),
        lambda: spread(50, 40, axis=0),
        _escaping,
        _into_product,
        _of_product,
    ],
)
def test_what_the_rule_is_not_about(made: Callable[[], Program]):
    """Few rows, a long row, one of unknown length, a value per row, what others read, roots."""
    assert isinstance(_answer(made()), NotApplicable)


def test_rows_stay_the_grid():
    """What is computed behind shares all loops, and a root evaluates its operand before the rule is heard."""
    p = Program((500, 96), (96,))
    scaled = p.binary(p.x[0], p.unary(p.unary(p.x[1])), dims_map(2, [1]))
    (group,) = p.done(p.relu(p.softmax(scaled))).partition().groups
    assert group.grid == (500,)
    decisions = [d for d in p.partition().decisions if d.rule == "made-ahead"]
    assert len(decisions) == 1 and decisions[0].verdict == "fused"
    product = _into_product()
    assert product.decisions(replace(TARGET, threads=1))["elementwise", "contraction"].rule == "read-in-place"
