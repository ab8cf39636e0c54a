"""Strips of an evaluated image: how high they are, how often they evaluate its elements, and of how many cache lines of
channels: two, or one, where that makes them taller."""

from __future__ import annotations

import pytest

from fuseline.analysis.image_strips import APART, channel_lines
from fuseline.analysis.strip_shapes import strip_height, times_evaluated
from tests.draws import RNG


@pytest.mark.parametrize("taps", [1, 3, 5, 7])
def test_one_line_where_elements_are_evaluated_less_often(taps: int) -> None:
    one = float(RNG.uniform(1, 2))
    worth = one * (1 + APART / taps)
    assert channel_lines({1: one, 2: worth * 1.01}.get, taps) == 1
    assert channel_lines({1: one, 2: worth * 0.99}.get, taps) == 2


@pytest.mark.parametrize("often", [{1: 1.0}, {}, {2: 1.5}])
def test_two_lines_where_they_do_not_fit(often: dict[int, float]) -> None:
    assert channel_lines(often.get, 3) == 2


def test_strips_are_as_high_as_fits_and_evaluate_what_lies_between_them_twice() -> None:
    lines, stride, window, line_bytes = (int(n) for n in RNG.integers([4, 1, 1, 5], [60, 4, 8, 90]))

    def steps(points: int) -> int:
        return (points - 1) * stride + window

    fitting = int(RNG.integers(1, lines))
    most = steps(fitting) * line_bytes + int(RNG.integers(line_bytes))
    assert strip_height(steps, lines, line_bytes, most) == fitting
    assert strip_height(steps, lines, line_bytes, window * line_bytes - 1) == 0
    assert times_evaluated(steps, lines, lines) == 1
    starts = range(0, lines, -(-lines // 2))  # two strips, the last one perhaps lower
    evaluated = len(starts) * steps(-(-lines // 2))
    assert times_evaluated(steps, lines, lines - 1) == pytest.approx(max(1.0, evaluated / steps(lines)))
