"""Budgets."""

from __future__ import annotations

import pytest

from fuseline.errors import FuselineError
from fuseline.tuning.budget import Budget, parse_budget


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("10m", Budget(seconds=600)),
        ("10 min", Budget(seconds=600)),
        ("1.5h", Budget(seconds=5400)),
        ("1 trial", Budget(trials=1)),
        ("200 trials, 90s", Budget(trials=200, seconds=90)),
    ],
)
def test_a_budget_is_read(text: str, budget: Budget):
    assert parse_budget(text) == budget


@pytest.mark.parametrize("text", ["", "10", "ten minutes", "0s", "0 trials", "1.5 trials", "5s, 6s", "-3m", "3 runs"])
def test_another_text_is_refused(text: str):
    with pytest.raises(FuselineError, match="E0501.*budget does not understand"):
        parse_budget(text)


def test_what_is_left():
    budget = Budget(trials=3, seconds=10)
    assert budget.left(2, 9.0) and not budget.left(3, 0.0) and not budget.left(0, 10.0)
    assert Budget().left(10**9, 1e9)
