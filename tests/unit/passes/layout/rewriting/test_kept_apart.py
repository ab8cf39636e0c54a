"""Reshapes in the way of fusion: those between a generic and a reader that could share its dispatch."""

from __future__ import annotations

from xdsl.dialects import linalg

from fuseline.ir.build import dims_map
from fuseline.passes.layout.collapse_dims import CollapseDimsPass
from fuseline.passes.layout.rewriting.kept_apart import reshapes_between
from tests.graphs.program import Program
from tests.unit.passes.layout.rewriting.programs import constant, same_results, scope_of


def _count(p: Program) -> int:
    return len(list(reshapes_between(scope_of(p))))


def _ranks(p: Program) -> list[int]:
    return [len(op.iterator_types) for op in p.function.walk() if isinstance(op, linalg.ops.GenericOp)]


def test_between_two_elementwise_ops() -> None:
    p = Program((4, 6))
    p.done(p.relu(p.collapse(p.unary(p.x[0]))))
    assert _count(p) == 1


def test_of_an_argument_or_for_the_caller_none() -> None:
    p = Program((4, 6))
    p.done(p.collapse(p.relu(p.expand(p.collapse(p.x[0]), 12, 2))))
    assert _count(p) == 0


def test_before_a_contraction_those_that_merge_loops() -> None:
    p = Program((2, 3, 4))
    p.done(p.matmul(p.collapse(p.unary(p.x[0]), [[0, 1], [2]]), constant(p, 4, 5)))
    assert _count(p) == 1
    with same_results(p) as scope:
        CollapseDimsPass().rewrite(scope)
    assert _count(p) == 0 and _ranks(p) == [2, 3]


def test_before_a_contraction_none_that_splits_loops() -> None:
    p = Program((6, 4))
    split = p.expand(p.unary(p.x[0]), 2, 3, 4, groups=[[0, 1], [2]])
    maps = [dims_map(4, dims) for dims in ([0, 1, 3], [3, 2], [0, 1, 2])]
    p.done(p.multiply_add(split, constant(p, 4, 5), p.zeros(2, 3, 5), maps, "pppr"))
    assert _count(p) == 0


def test_a_chain_counts_where_it_is_read() -> None:
    p = Program((4, 6))
    p.done(p.relu(p.expand(p.collapse(p.unary(p.x[0])), 12, 2)))
    assert _count(p) == 1


def test_loops_are_merged_only_where_one_is_in_the_way() -> None:
    p = Program((4, 6))
    p.done(p.relu(p.unary(p.x[0])))
    with same_results(p) as scope:
        CollapseDimsPass().rewrite(scope)
    assert _ranks(p) == [2, 2]
    with same_results(p) as scope:
        CollapseDimsPass(everywhere=True).rewrite(scope)
    assert _ranks(p) == [1, 1]


def test_loops_are_merged_for_a_pad_that_reads_them_as_one() -> None:
    p = Program((2, 3, 4))
    flat = p.collapse(p.unary(p.x[0]), [[0, 1], [2]])
    p.done(p.pad(flat, (1, 0), (1, 0)))
    assert _count(p) == 1
    with same_results(p) as scope:
        CollapseDimsPass().rewrite(scope)
    assert _count(p) == 0 and _ranks(p) == [2]


def test_a_pad_needs_the_dimensions_as_they_are() -> None:
    p = Program((2, 3, 4))
    x = p.unary(p.x[0])
    p.done(p.relu(p.collapse(x)), p.pad(x, (1, 0, 0), (1, 0, 0)))
    with same_results(p) as scope:
        CollapseDimsPass().rewrite(scope)
    assert _count(p) == 1 and _ranks(p) == [3, 1]
