"""How often each element of what is read in place would be computed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fuseline.ir.build import dims_map
from fuseline.passes.fusion.merging import align, inline_into, merged
from fuseline.passes.fusion.read_multiplicity import read_multiplicity, recompute_factor

from .programs import Program
from .rule_programs import exp_read_twice, exp_spread, exp_spread_without_bound, graph_of, two_exps


@pytest.mark.parametrize(
    ("program", "times"),
    [(two_exps, 1.0), (exp_spread, 4096.0), (exp_read_twice, 1.0), (exp_spread_without_bound, float("inf"))],
)
def test_how_often_an_element_is_read(program: Callable[[], Program], times: float):
    _, groups = graph_of(program())
    reads = list(groups[-1].reads_from(groups[0]))
    assert [read_multiplicity(read) for read in reads] == [times] * len(reads)
    assert recompute_factor(reads) == times


def test_readers_that_each_compute_it_add_up():
    p = Program((4, 16), (4,))
    e = p.unary(p.x[1])
    _, (exp, one, two) = graph_of(p.done(p.binary(p.x[0], e, dims_map(2, [0])), p.unary(e)))
    both = merged(one, two, align(one, two))
    assert recompute_factor(both.reads_from(exp)) == 16 + 1


def test_an_unknown_number_of_rows_is_no_matter_where_each_element_is_read_once():
    p = Program(("n", 16), ("n",))
    _, (exp, add) = graph_of(p.done(p.binary(p.x[0], p.unary(p.x[1]), dims_map(2, [0]))))
    assert recompute_factor(add.reads_from(exp)) == 16


def test_an_empty_space_reads_nothing_again():
    p = Program((0, 16), (0,))
    _, (exp, add) = graph_of(p.done(p.binary(p.x[0], p.unary(p.x[1]), dims_map(2, [0]))))
    assert recompute_factor(add.reads_from(exp)) == 1


def test_a_concat_selects_what_it_reads():
    p = Program((4, 8), (4, 8), (4, 16))
    _, (first, concat, add) = graph_of(p.done(p.binary(p.x[2], p.concat(p.unary(p.x[0]), p.x[1]))))
    assert recompute_factor(inline_into(concat, add).reads_from(first)) == 1


def test_a_value_of_another_op_is_no_result():
    _, (first, last) = graph_of(two_exps())
    assert first.root.result_index(first.root.op.results[0]) == 0
    with pytest.raises(ValueError, match="is no result of linalg.generic"):
        first.root.result_index(last.root.op.results[0])


@pytest.mark.parametrize(("second", "times"), [(3, 1.0), (5, (5 + 5) / 8), (7, (5 + 7) / 8)])
def test_slices_add_up_to_what_they_look_at(second: int, times: float):
    p = Program((12, 8))
    e = p.unary(p.x[0])
    parts = p.slice(e, [0, 3], [12, 5]), p.slice(e, [0, 0], [12, second])
    _, (exp, first, last, concat) = graph_of(p.done(p.concat(*parts, axis=1)))
    readers = inline_into(last, inline_into(first, concat))
    assert recompute_factor(readers.reads_from(exp)) == times
