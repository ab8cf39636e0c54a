"""Each rule of the bounds checker against enumeration: the tightest access is proved, the first that leaves the buffer
never is."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.cpu.kernel_ir.types import Type

from .index_algebra import AVX2, Builder, Index, Nest, Numbers, extremes, loops, points, problems


def upper_is_tight(nest: Nest, index: Index, high: int, low: int) -> None:
    """A buffer that ends behind `high` holds every access, one element less does not."""
    below = [p for p in problems(nest, index, high - low + 1, low) if "lies before" in p.detail]
    assert not below
    (problem,) = (p for p in problems(nest, index, high - low, low) if "lies before" in p.detail)
    assert (problem.operation, problem.buffer) == ("load", "b0")
    assert problem.detail.endswith(f"lies before {high - low}")


def lower_is_tight(nest: Nest, index: Index, low: int) -> None:
    """A buffer that starts at `low` holds every access, one element later does not."""
    assert not [p for p in problems(nest, index, 10**6, low) if "is not negative" in p.detail]
    (problem,) = problems(nest, index, 10**6, low + 1)
    assert (problem.operation, problem.buffer) == ("load", "b0")
    assert "is not negative" in problem.detail


ONE, IJ = loops((0, 30, 1)), loops((0, 7, 1), (-4, 9, 1))
INSIDE_TRIANGLE = Nest([lambda o: (0, 6, 1), lambda o, i: (i, 6, 1)])
BLOCKS = Nest([lambda o: (0, 5, 1), lambda o, i: (0, o.add(o.mul(i, 8), 8), 8)])
WINDOWS = Nest([lambda o: (0, 5, 1), lambda o, i: (o.mul(i, 3), o.add(o.mul(i, 3), 6), 2)])

ONCE = loops((4, 6, 8), (0, 5, 1))
SIDES = loops((0, 30, 1), (1, 7, 1))
TILES = Nest(
    [lambda o: (1, 4, 1), lambda o, a: (1, 3, 1), lambda o, a, b: (0, o.mul(o.mul(o.mul(a, b), 2), o.size(2)), 1)]
)


def tile(o: Any, a: Any, b: Any, t: Any) -> Any:
    """Which of `2 * size(2)` a loop over as many times `a * b` is in."""
    return o.div(o.div(t, a), b)


TIGHT: dict[str, tuple[Nest, Index]] = {
    "a product with the index of a single iteration": (ONCE, lambda o, i, j: o.mul(i, j)),
    "a product": (SIDES, lambda o, i, j: o.mul(i, j)),
    "a square of a sum": (SIDES, lambda o, i, j: o.mul(o.add(i, 3), o.add(i, 3))),
    "a quotient by an index": (SIDES, lambda o, i, j: o.div(i, j)),
    "a quotient by an index, from below": (SIDES, lambda o, i, j: o.div(o.add(i, 40), j)),
    "a rest by an index": (SIDES, lambda o, i, j: o.rem(i, j)),
    "a rest of little by an index": (loops((0, 3, 1), (1, 7, 1)), lambda o, i, j: o.rem(i, j)),
    "a rest and its divisor": (SIDES, lambda o, i, j: o.sub(o.rem(i, j), j)),
    "a quotient by 1 of what may be negative": (
        loops((-9, 9, 1), (1, 2, 1)),
        lambda o, i, j: i if isinstance(o, Numbers) else o.div(i, j),
    ),
    "a rest by 1": (loops((-9, 9, 1), (1, 2, 1)), lambda o, i, j: 0 if isinstance(o, Numbers) else o.rem(i, j)),
    "one of several tiles": (TILES, tile),
    "a place in a row of tiles": (TILES, lambda o, a, b, t: o.sub(o.div(t, a), o.mul(b, o.mul(o.size(2), 2)))),
    "halves of tiles": (TILES, lambda o, a, b, t: o.div(tile(o, a, b, t), 2)),
    "a constant": (ONE, lambda o, i: 12),
    "a loop from 0": (ONE, lambda o, i: i),
    "a loop from elsewhere": (loops((-5, 9, 1)), lambda o, i: i),
    "whole steps": (loops((3, 27, 8)), lambda o, i: i),
    "steps with a rest of one": (loops((0, 17, 8)), lambda o, i: i),
    "a negative factor": (loops((2, 9, 1)), lambda o, i: o.mul(i, -3)),
    "whole negative steps": (loops((8, 32, 8)), lambda o, i: o.mul(i, -1)),
    "two loops": (IJ, lambda o, i, j: o.sub(o.mul(i, 13), o.mul(j, 2))),
    "an inner loop from the outer one": (INSIDE_TRIANGLE, lambda o, i, j: o.sub(j, i)),
    "whole blocks up to the outer loop": (BLOCKS, lambda o, i, j: j),
    "whole blocks relative to the outer loop": (WINDOWS, lambda o, i, j: o.sub(j, o.mul(i, 3))),
    "the smaller of an index and a number": (ONE, lambda o, i: o.min(i, 17)),
    "the larger of an index and a number": (ONE, lambda o, i: o.max(i, 4)),
    "the smaller of two": (IJ, lambda o, i, j: o.min(i, j)),
    "the larger of two": (IJ, lambda o, i, j: o.max(i, j)),
    "minus the smaller": (IJ, lambda o, i, j: o.mul(o.min(i, j), -1)),
    "minus the larger": (IJ, lambda o, i, j: o.mul(o.max(i, j), -1)),
    "clamped": (loops((-9, 90, 1)), lambda o, i: o.min(o.max(i, 0), 40)),
    "either of two": (IJ, lambda o, i, j: o.select(o.compare("lt", i, 3), o.add(j, 20), j)),
    "either of two, second larger": (IJ, lambda o, i, j: o.select(o.compare("lt", i, 3), o.sub(j, 20), j)),
    "a quotient": (ONE, lambda o, i: o.div(i, 4)),
    "a quotient that is whole at the end": (loops((0, 29, 1)), lambda o, i: o.div(i, 4)),
    "a rest": (ONE, lambda o, i: o.rem(i, 7)),
    "a rest of what is smaller": (ONE, lambda o, i: o.rem(i, 50)),
    "a rest of what is one smaller": (ONE, lambda o, i: o.rem(i, 29)),
    "a rest of the divisor at most": (ONE, lambda o, i: o.rem(i, 30)),
    "a rest of nothing but 0": (ONE, lambda o, i: o.rem(o.mul(o.min(i, 0), 2), 5)),
    "minus a rest": (ONE, lambda o, i: o.mul(o.rem(i, 7), -1)),
    "a mask": (loops((-20, 20, 1)), lambda o, i: o.bitand(i, 7)),
    "a mask of nothing": (loops((-20, 20, 1)), lambda o, i: o.bitand(i, 0)),
    "minus a mask": (loops((-20, 20, 1)), lambda o, i: o.mul(o.bitand(i, 5), -2)),
    "a size": (ONE, lambda o, i: o.add(i, o.size(0))),
    "a multiple of a size": (ONE, lambda o, i: o.mul(i, o.size(2))),
    "a size times an index": (ONE, lambda o, i: o.mul(o.size(2), i)),
    "a multiple of a size that is 0": (ONE, lambda o, i: o.mul(i, o.size(1))),
    "a quotient of a size": (ONE, lambda o, i: o.div(o.size(0), 3)),
    "a rest of a size": (ONE, lambda o, i: o.rem(o.size(0), 4)),
    "a quotient by a size": (ONE, lambda o, i: o.div(i, o.size(2))),
    "a rest by a size": (ONE, lambda o, i: o.rem(i, o.size(2))),
    "a mask of a size": (loops((-20, 20, 1)), lambda o, i: o.bitand(i, o.size(2))),
    "the smaller of a size and a number": (ONE, lambda o, i: o.min(o.size(0), 5)),
    "the larger of a size and a number": (ONE, lambda o, i: o.max(o.size(0), 5)),
    "the smaller of a size of 0": (ONE, lambda o, i: o.min(5, o.size(1))),
    "the larger of a size of 0": (ONE, lambda o, i: o.max(5, o.size(1))),
    "an index times the smaller of a size and a number": (ONE, lambda o, i: o.mul(i, o.min(o.size(0), 5))),
    "an index times the larger of a size and a number": (ONE, lambda o, i: o.mul(i, o.max(o.size(0), 15))),
    "an index times a quotient of a size of 0": (ONE, lambda o, i: o.add(o.mul(i, o.div(o.size(1), 3)), i)),
    "an index times a size over 1": (ONE, lambda o, i: o.mul(i, o.div(o.size(0), o.sub(o.size(2), 2)))),
    "a quotient by a size of 1": (ONE, lambda o, i: o.div(i, o.sub(o.size(2), 2))),
    "a minimum below a size": (ONE, lambda o, i: o.sub(o.min(o.size(0), 13), i)),
}


@pytest.mark.parametrize(("nest", "index"), TIGHT.values(), ids=TIGHT)
def test_the_tightest_buffer_is_proved_and_no_smaller_one(nest: Nest, index: Index):
    low, high = extremes(nest, index)
    upper_is_tight(nest, index, high, low)
    lower_is_tight(nest, index, low)


UPPER: dict[str, Index] = {
    "whole multiples of a quotient": lambda o, i: o.sub(o.mul(o.div(i, 7), 7), i),
    "a quotient by 1": lambda o, i: o.sub(o.div(i, o.sub(o.size(2), 2)), i),
    "twice the multiples": lambda o, i: o.sub(o.mul(o.div(i, 7), 14), o.mul(i, 2)),
}


@pytest.mark.parametrize("index", UPPER.values(), ids=UPPER)
def test_a_quotient_times_its_divisor_does_not_exceed_what_is_divided(index: Index):
    upper_is_tight(ONE, index, 0, -28)


def test_a_quotient_times_its_divisor_lacks_less_than_that():
    """As where a window with steps begins that must not begin before the image: `2 * ceil((7 - i) / 2)` is at least
    `7 - i`."""

    def index(o: Any, i: Any) -> Any:
        begin = o.div(o.add(o.max(o.sub(7, i), 0), 1), 2)
        return o.add(o.mul(o.max(begin, 0), 6), o.mul(i, 3))

    lower_is_tight(ONE, index, 21)
    assert extremes(ONE, index)[0] == 21


def test_a_quotient_times_something_else_is_only_bounded():
    """`3 * (i / 2)` may exceed `i`."""

    def index(o: Any, i: Any) -> Any:
        return o.sub(o.mul(o.div(i, 2), 3), i)

    assert extremes(ONE, index)[1] == 14
    assert [p for p in problems(ONE, index, 29 + 14, -29) if "lies before" in p.detail]


@pytest.mark.parametrize(
    "index",
    [
        lambda o, i: o.bitand(i, -8),
        lambda o, i: o.bitand(i, i),
        lambda o, i: o.mul(i, o.sub(i, 1)),
        lambda o, i: o.div(10, i),
        lambda o, i: o.rem(10, i),
        lambda o, i: o.div(i, o.size(1)),
        lambda o, i: o.rem(i, o.size(1)),
        lambda o, i: o.div(o.size(0), o.size(1)),
        lambda o, i: o.load(o.binding(1, "i64", 1), 0),
    ],
)
def test_what_no_rule_bounds_from_above(index: Index):
    """In a loop inside: an outermost one is looked at by cases, and each of its numbers gives one."""
    inside = loops((0, 2, 1), (0, 30, 1))
    assert "lies before" in problems(inside, lambda o, _, i: index(o, i), 10**6)[0].detail


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


LENGTHS: list[tuple[Any, int]] = [(None, 9), (8, 9), (7, 8), (1, 2), ("size", 6)]


def test_vectors_of_different_masks_are_told_apart():
    """A masked vector touches `active` elements, a whole one all its lanes."""

    def count(active: Any, extent: int, store: bool) -> int:
        k = Builder("kernel", AVX2)
        memory = k.binding(0, "f32", extent, writable=True)
        length = k.size(0) if active == "size" else active
        if store:
            k.store(memory, 2, k.splat(k.const(1.5, "f32"), 8), active=length)
        else:
            k.load(memory, 2, 8, active=length)
        return len(check_bounds(k.finish(), [5]))

    for store in (False, True):
        for active, last in LENGTHS:
            assert count(active, last + 1, store) == 0
            assert count(active, last, store) == 1


def test_what_has_no_active_lane_is_not_touched():
    """8 lanes at place 9 of 10 elements, of which `size - 4` are active."""

    def count(size: int) -> int:
        k = Builder("kernel", AVX2)
        k.load(k.binding(0, "f32", 10), 9, 8, active=k.sub(k.size(0), 4))
        return len(check_bounds(k.finish(), [size]))

    assert [count(size) for size in (3, 4, 5, 6)] == [0, 0, 0, 1]


def test_what_no_size_lets_happen_is_not_asked():
    """Element 7 of 5 is read where the size exceeds 7, element 0 where it does not."""

    def count(size: int) -> int:
        k = Builder("kernel", AVX2)
        memory = k.binding(0, "f32", 5)
        k.when(k.compare("gt", k.size(0), 7), lambda: (k.load(memory, 7), ())[1], lambda: (k.load(memory, 0), ())[1])
        return len(check_bounds(k.finish(), [size]))

    assert [count(size) for size in (0, 7, 8)] == [0, 0, 1]


def test_bits_moved_to_the_right_are_a_number_from_0_on():
    """Of 32 bits that nobody knows, of numbers that are known, and by no place at all."""

    def index(places: int, start: int) -> Index:
        def of(o: Any, i: Any) -> Any:
            return (
                (i % 2**32) >> places
                if isinstance(o, Numbers)
                else o.cast(o.lshr(o.cast(i, "i32"), o.const(places, "i32")), "i64")
            )

        upper_is_tight(loops((start, 30, 1)), of, extremes(loops((start, 30, 1)), of)[1], 0)
        lower_is_tight(loops((start, 30, 1)), of, extremes(loops((start, 30, 1)), of)[0])
        return of

    index(2, 0)
    index(29, -3)
    assert problems(loops((-3, 30, 1)), lambda o, i: o.lshr(i, 0), 30)


@pytest.mark.parametrize("scatter", [False, True])
def test_lanes_that_are_not_live_are_not_read(scatter: bool):
    def places(active: Any, extent: int) -> list[str]:
        k = Builder("kernel", AVX2)
        memory, indices = k.binding(0, "f32", extent, writable=True), k.const((0, 9, 4, 7), "i64", 4)
        if scatter:
            k.scatter(memory, indices, k.splat(k.const(2.0, "f32"), 4), active=active)
        else:
            k.gather(memory, indices, active=active)
        return [p.detail.split()[4] for p in check_bounds(k.finish())]

    assert places(None, 10) == places(4, 10) == []
    assert places(None, 9) == ["9"]
    assert places(None, 7) == ["9", "7"]
    assert places(3, 7) == ["9"]
    assert places(1, 1) == []


def test_a_live_lane_tells_the_number_of_active_ones():
    """Lane `l` is read only if `active > l`, so `i = 4 - active` is at most `3 - l` there, and anything behind it."""
    for extent, count in ((4, 1), (3, 5)):
        k = Builder("kernel", AVX2)
        memory = k.binding(0, "f32", extent)

        def body(i: Any, k: Builder = k, memory: Any = memory) -> None:
            k.gather(memory, k.lane_indices(i, 1, 4), active=k.sub(4, i))
            k.load(memory, i)

        k.loop(0, 9, 1, body)
        assert len(check_bounds(k.finish())) == count


@pytest.mark.parametrize(("extent", "count"), [(7, 0), (6, 1)])
@pytest.mark.parametrize("store", [False, True])
def test_a_vector_that_is_read_has_an_active_element(extent: int, count: int, store: bool):
    """Of `4 - i` elements from `3 - i` on one is read only if `i` is less than 4."""
    k = Builder("kernel", AVX2)
    memory = k.binding(0, "f32", extent, writable=True)

    def body(i: Any) -> None:
        if store:
            k.store(memory, k.sub(3, i), k.splat(k.const(1.5, "f32"), 8), active=k.sub(4, i))
        else:
            k.load(memory, k.sub(3, i), 8, active=k.sub(4, i))

    k.loop(0, 9, 1, body)
    assert len(check_bounds(k.finish())) == count


@pytest.mark.parametrize(("at", "low", "high"), [("begin", 0, 5), ("end", 0, 6)])
def test_the_range_of_workgroups_lies_in_the_grid(at: str, low: int, high: int):
    def count(extent: int, shift: int) -> int:
        k = Builder("kernel", AVX2)
        k.load(k.binding(0, "f32", extent), k.sub(getattr(k, at), shift))
        return len(check_bounds(k.finish(), workgroups=6))

    assert count(high + 1, low) == 0
    assert (count(high, low), count(high + 1, low + 1)) == (1, 1)


def test_one_workgroup_is_the_default():
    k = Builder("kernel", AVX2)
    k.load(k.binding(0, "f32", 1), k.begin)
    assert check_bounds(k.finish()) == []


@pytest.mark.parametrize(("last", "count"), [(9, 0), (8, 1)])
@pytest.mark.parametrize("swapped", [False, True])
def test_the_second_address_is_read_where_the_condition_fails(last: int, count: int, swapped: bool):
    k = Builder("kernel", AVX2)
    memory, zero = k.binding(0, "f32", last + 1), k.scratch("f32", 1)

    def body(i: Any) -> None:
        if swapped:
            k.load(k.select_mem(k.compare("lt", i, 10), memory, i, zero, 0))
        else:
            k.load(k.select_mem(k.compare("ge", i, 10), zero, 0, memory, i))

    k.loop(0, 20, 1, body)
    assert len(check_bounds(k.finish())) == count


def test_the_choice_of_an_address_tells_nothing_about_the_next():
    k = Builder("kernel", AVX2)
    memory, zero = k.binding(0, "f32", 10), k.scratch("f32", 1)

    def body(i: Any) -> None:
        k.load(k.select_mem(k.compare("lt", i, 10), memory, i, zero, 0))
        k.load(memory, i)

    k.loop(0, 20, 1, body)
    assert len(check_bounds(k.finish())) == 1


# conversions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("start", "unsigned"), [(-3, False), (0, False), (0, True)])
def test_numbers_that_fit_pass_through_conversions(start: int, unsigned: bool):
    nest = loops((start, 9, 1))

    def index(o: Any, i: Any) -> Any:
        return i if isinstance(o, Numbers) else o.cast(o.cast(i, "i32"), "i64", unsigned=unsigned)

    upper_is_tight(nest, index, 8, start)
    lower_is_tight(nest, index, start)


def test_a_negative_number_read_as_unsigned_is_a_great_one():
    def index(o: Any, i: Any) -> Any:
        return i % 2**32 if isinstance(o, Numbers) else o.cast(o.cast(i, "i32"), "i64", unsigned=True)

    nest = loops((-1, 9, 1))
    assert extremes(nest, index) == (0, 2**32 - 1)
    assert ["lies before" in p.detail for p in problems(nest, index, 10, -1)] == [True]
    assert not [p for p in problems(nest, index, 2**40) if "is not negative" in p.detail]


@pytest.mark.parametrize(("lo", "hi", "fits"), [(-128, 128, True), (-128, 129, False), (-129, 128, False)])
def test_a_number_too_wide_for_its_type_wraps(lo: int, hi: int, fits: bool):
    def index(o: Any, i: Any) -> Any:
        return (i + 128) % 256 - 128 if isinstance(o, Numbers) else o.cast(o.cast(i, "i8"), "i64")

    nest = loops((lo, hi, 1))
    assert extremes(nest, index) == (-128, 127)
    assert (not problems(nest, index, 256, -128)) is fits


def test_a_byte_that_is_read_is_one():
    def index(o: Any, i: Any) -> Any:
        return o.cast(o.load(o.binding(1, "i8", 30), i), "i64", unsigned=True)

    upper_is_tight(ONE, index, 255, 0)
    lower_is_tight(ONE, index, 0)


def test_a_number_that_is_read_and_cut_is_unknown():
    def index(o: Any, i: Any) -> Any:
        return o.cast(o.cast(o.load(o.binding(1, "i64", 30), i), "i32"), "i64")

    assert len(problems(ONE, index, 10**6)) == 2


@pytest.mark.parametrize(("stored", "kind"), [((1.5,), Type("f64")), ((1, 0, 1, 0), Type("i32", 4))])
def test_bits_of_another_type_are_another_number(stored: tuple[Any, ...], kind: Type):
    k = Builder("kernel", AVX2)
    bits = k.bitcast(k.const(stored if kind.lanes > 1 else stored[0], *kind), "i64")
    k.gather(k.binding(0, "f32", 2), bits)
    assert check_bounds(k.finish())


# any expression -------------------------------------------------------------------------------------------------------


class Random:
    """Draws indices over two loop values, and conditions."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def index(self, depth: int) -> Index:
        if depth == 0:
            return self.rng.choice([lambda o, i, j: i, lambda o, i, j: j, lambda o, i, j: o.size(0)])
        a, b, c, m = self.index(depth - 1), self.index(depth - 1), self.rng.randint(1, 9), self.rng.randint(-3, 4)
        kinds: list[Index] = [
            lambda o, *p: o.add(a(o, *p), b(o, *p)),
            lambda o, *p: o.sub(a(o, *p), b(o, *p)),
            lambda o, *p: o.mul(a(o, *p), m),
            lambda o, *p: o.mul(a(o, *p), b(o, *p)),
            lambda o, *p: o.div(o.max(a(o, *p), 0), o.max(b(o, *p), c)),
            lambda o, *p: o.rem(o.max(a(o, *p), 0), o.max(b(o, *p), c)),
            lambda o, *p: o.div(o.div(o.max(o.mul(a(o, *p), b(o, *p)), 0), o.max(b(o, *p), 1)), c),
            lambda o, *p: o.mul(o.div(o.max(a(o, *p), 0), c), c),
            lambda o, *p: o.mul(o.div(a(o, *p), c), m),
            lambda o, *p: o.min(o.div(a(o, *p), c), b(o, *p)),
            lambda o, *p: o.div(o.max(a(o, *p), 0), o.max(b(o, *p), 1)),
            lambda o, *p: o.rem(o.max(a(o, *p), 0), o.max(b(o, *p), 1)),
            lambda o, *p: o.rem(o.max(a(o, *p), 0), c),
            lambda o, *p: o.rem(a(o, *p), c),
            lambda o, *p: o.narrow(o.mul(a(o, *p), 7 * m), "i8"),
            lambda o, *p: o.narrow_sum(o.mul(a(o, *p), 7), b(o, *p), "i8"),
            lambda o, *p: o.unsigned(a(o, *p), "i8"),
            lambda o, *p: o.min(a(o, *p), b(o, *p)),
            lambda o, *p: o.max(a(o, *p), c),
            lambda o, *p: o.bitand(a(o, *p), c),
            lambda o, *p: o.select(o.compare("lt", a(o, *p), c), a(o, *p), b(o, *p)),
        ]
        return self.rng.choice(kinds)

    def nest(self) -> Nest:
        """A loop, a loop inside it that starts at a multiple of the first, and mostly a condition."""
        draw = self.rng.randint
        lo, n, step, times, m, inner = draw(-4, 4), draw(2, 9), draw(1, 4), draw(0, 2), draw(2, 9), draw(1, 3)
        return Nest(
            [lambda o: (lo, lo + n, step), lambda o, i: (o.mul(i, times), o.add(o.mul(i, times), m), inner)],
            self.rng.choice([None, self._condition(), self._conditions()]),
            self.rng.random() < 0.5,
        )

    def _condition(self) -> Index:
        predicate = self.rng.choice(["lt", "le", "gt", "ge", "eq", "ne", "ult"])
        a, b = self.index(1), self.index(self.rng.randint(0, 1))
        return lambda o, *p: o.compare(predicate, a(o, *p), b(o, *p))

    def _conditions(self) -> Index:
        one, two = self._condition(), self._condition()
        return lambda o, *p: o.both(one(o, *p), two(o, *p))


@pytest.mark.parametrize("seed", range(8))
def test_no_access_that_leaves_its_buffer_is_proved(seed: int):
    draw, proved = Random(seed), 0
    for _ in range(60):
        nest, index = draw.nest(), draw.index(draw.rng.randint(0, 3))
        if not any(True for _ in points(nest)):
            continue
        low, high = extremes(nest, index)
        assert problems(nest, index, high - low, low), (low, high)
        assert problems(nest, index, 10**6, low + 1), (low, high)
        proved += not problems(nest, index, high - low + 1, low)
    assert proved >= 5
