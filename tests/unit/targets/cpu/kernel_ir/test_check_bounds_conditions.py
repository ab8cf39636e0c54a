"""What conditions tell the bounds checker of the indices behind them, against enumeration."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds

from .index_algebra import (
    AVX2,
    Builder,
    Index,
    Nest,
    extremes,
    loops,
    lower_is_tight,
    problems,
    upper_is_tight,
)


@pytest.mark.parametrize("predicate", ["lt", "le", "gt", "ge", "eq", "ne", "ult"])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("branch", [True, False])
def test_a_condition_bounds_an_index(predicate: str, swapped: bool, branch: bool):
    around = loops((0 if predicate == "ult" else -20, 21, 1)).loops
    nest = Nest(around, lambda o, i: o.compare(predicate, *((7, i) if swapped else (i, 7))), branch)
    low, high = extremes(nest, lambda o, i: i)
    upper_is_tight(nest, lambda o, i: i, high, low)
    lower_is_tight(nest, lambda o, i: i, low)


def test_a_problem_names_the_element_and_the_end():
    details = [
        p.detail for p in problems(loops((0, 5, 1), (0, 3, 1)), lambda o, i, j: o.add(o.mul(i, 3), o.sub(7, j)), 9)
    ]
    (detail,) = details
    assert re.fullmatch(r"cannot show that element 3\*index\d+ \+ -1\*index\d+ \+ 7 lies before 9", detail)


def test_unsigned_order_tells_the_sign_too():
    nest = Nest(loops((-20, 21, 1)).loops, lambda o, i: o.compare("ult", i, 7))
    upper_is_tight(nest, lambda o, i: i, 6, 0)
    lower_is_tight(nest, lambda o, i: i, 0)


def test_unsigned_order_below_what_may_be_negative_tells_nothing():
    """`i < -1` holds for all that is not negative."""
    nest = Nest(loops((0, 21, 1), (-3, 2, 1)).loops, lambda o, i, j: o.compare("ult", i, j))
    assert extremes(nest, lambda o, i, j: i) == (0, 20)
    upper_is_tight(nest, lambda o, i, j: i, 20, 0)
    upper_is_tight(nest, lambda o, i, j: o.sub(j, i), 1, -30)


def test_unsigned_order_failed_by_what_may_be_negative_tells_nothing():
    nest = Nest(loops((-20, 21, 1)).loops, lambda o, i: o.compare("ult", i, 7), branch=False)
    assert extremes(nest, lambda o, i: i) == (-20, 20)
    lower_is_tight(nest, lambda o, i: i, -20)


@pytest.mark.parametrize("branch", [True, False])
def test_other_conditions_leave_the_loop_to_bound_the_index(branch: bool):
    nest = Nest(loops((0, 21, 1)).loops, lambda o, i: o.compare("uge", i, 7), branch)
    upper_is_tight(nest, lambda o, i: i, 20, 0)
    lower_is_tight(nest, lambda o, i: i, 0)


def test_both_conditions_hold_where_both_are_asked_for():
    nest = Nest(loops((-20, 21, 1)).loops, lambda o, i: o.both(o.compare("lt", i, 7), o.compare("ge", i, -3)))
    upper_is_tight(nest, lambda o, i: i, 6, -3)
    lower_is_tight(nest, lambda o, i: i, -3)
    otherwise = nest._replace(branch=False)
    upper_is_tight(otherwise, lambda o, i: i, 20, -20)
    lower_is_tight(otherwise, lambda o, i: i, -20)


@pytest.mark.parametrize(("factor", "high"), [(1, 4), (3, 12)])
def test_a_condition_between_two_indices_counts_as_often_as_needed(factor: int, high: int):
    nest = Nest(loops((0, 9, 1), (0, 5, 1)).loops, lambda o, i, j: o.compare("le", i, j))
    upper_is_tight(nest, lambda o, i, j: o.mul(i, factor), high, 0)


def test_a_condition_on_a_multiple_counts_as_often_as_needed():
    nest = Nest(loops((0, 9, 1), (0, 5, 1)).loops, lambda o, i, j: o.compare("le", o.mul(i, 2), j))
    upper_is_tight(nest, lambda o, i, j: o.mul(i, 4), 8, 0)


@pytest.mark.parametrize(("factor", "rest"), [(3, 8), (8, 3)])
def test_steps_that_are_whole_for_some_outer_iterations_only(factor: int, rest: int):
    nest = Nest([lambda o: (0, 5, 1), lambda o, i: (0, o.add(o.mul(i, factor), rest), 8)])
    high = extremes(nest, lambda o, i, j: j)[1]
    assert problems(nest, lambda o, i, j: j, high)
    assert not problems(nest, lambda o, i, j: j, 4 * factor + rest)


def test_two_conditions_in_a_row():
    around = loops((0, 9, 1), (0, 9, 1), (0, 5, 1)).loops
    nest = Nest(around, lambda o, i, j, m: o.both(o.compare("lt", i, j), o.compare("lt", j, m)))
    upper_is_tight(nest, lambda o, i, j, m: i, 2, 0)


@pytest.mark.parametrize(
    ("index", "high"),
    [(lambda o, i: o.div(i, 5), 2), (lambda o, i: o.rem(i, 50), 13), (lambda o, i: o.div(o.mul(i, 2), 5), 5)],
)
def test_a_condition_bounds_what_is_divided(index: Index, high: int):
    nest = Nest(loops((0, 40, 1)).loops, lambda o, i: o.compare("lt", i, 14))
    upper_is_tight(nest, index, high, 0)


@pytest.mark.parametrize(
    "index",
    [
        lambda o, i: o.min(i, 12),
        lambda o, i: o.max(o.min(i, 12), 3),
        lambda o, i: o.select(o.compare("lt", i, 9), i, 5),
    ],
)
def test_a_condition_bounds_what_is_chosen_from(index: Index):
    nest = Nest(loops((-20, 40, 1)).loops, lambda o, i: o.both(o.compare("ge", i, 3), o.compare("lt", i, 30)))
    low, high = extremes(nest, index)
    lower_is_tight(nest, index, low)
    assert not problems(nest, index, 30)
    assert [p for p in problems(nest, index, high - low, low) if "lies before" in p.detail]


def test_a_condition_is_forgotten_behind_its_branch():
    k = Builder("kernel", AVX2)
    memory = k.binding(0, "f32", 10)

    def body(i: Any) -> None:
        k.when(
            k.compare("lt", i, 10), lambda: (k.load(memory, i), ())[1], lambda: (k.load(memory, k.sub(i, 10)), ())[1]
        )
        k.load(memory, i)

    k.loop(0, 20, 1, body)
    assert [p.detail.split()[-1] for p in check_bounds(k.finish())] == ["10"]
