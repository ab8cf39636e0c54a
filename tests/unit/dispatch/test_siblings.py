"""Arguments that several independent parts of a dispatch walk."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import math
from xdsl.ir import SSAValue

from fuseline.dispatch.siblings import sibling_links
from tests.graphs.program import Program
from tests.unit.passes.layout.rewriting.programs import scope_of


def _links(p: Program, members: Sequence[SSAValue]) -> list[set[tuple[int, int, int]]]:
    """Per argument: its dimension, the member that steps along it, and with which loop."""
    ops = [value.owner for value in members]
    found = sibling_links(p.block.args, ops, scope_of(p).shapes)  # pyright: ignore[reportArgumentType]
    return [{(axis, ops.index(op), loop) for (_, axis), (op, loop) in links} for links in found]


def test_two_elementwise_parts_walk_one_argument_together() -> None:
    p = Program((4, 6))
    parts = [p.unary(p.x[0]), p.unary(p.x[0], math.TanhOp)]
    p.done(*parts)
    assert _links(p, parts) == [{(0, 0, 0), (1, 0, 1), (0, 1, 0), (1, 1, 1)}]


def test_a_transposed_reader_steps_along_other_loops() -> None:
    p = Program((4, 6))
    parts = [p.unary(p.x[0]), p.unary(p.x[0], permutation=(1, 0))]
    p.done(*parts)
    assert _links(p, parts) == [{(0, 0, 0), (1, 0, 1), (0, 1, 1), (1, 1, 0)}]


def test_a_sum_is_gathered_on_the_way() -> None:
    p = Program((4, 6))
    parts = [p.unary(p.x[0]), p.reduce(p.x[0])]
    p.done(*parts)
    assert _links(p, parts) == [{(0, 0, 0), (1, 0, 1), (0, 1, 0), (1, 1, 1)}]


def test_readers_of_one_part_join_nothing() -> None:
    p = Program((4, 6))
    first = p.unary(p.x[0])
    last = p.add(first, p.x[0])
    p.done(last)
    assert _links(p, [first, last]) == []


def test_parts_of_their_own_arguments_join_nothing() -> None:
    p = Program((4, 6), (4, 6))
    parts = [p.unary(p.x[0]), p.unary(p.x[1])]
    p.done(*parts)
    assert _links(p, parts) == []
