"""Each rule of the bounds checker for the arithmetic of indices against enumeration: the tightest access is proved, the
first that leaves the buffer never is."""

from __future__ import annotations

from typing import Any

import pytest

from .index_algebra import (
    Index,
    Nest,
    Numbers,
    extremes,
    loops,
    lower_is_tight,
    problems,
    upper_is_tight,
)

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
