"""How many cache lines of channels strips of an evaluated image have: two, or one, where that makes them taller."""

from __future__ import annotations

import pytest

from fuseline.analysis.image_strips import APART, channel_lines
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
