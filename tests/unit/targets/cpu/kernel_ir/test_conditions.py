"""Conditions in force: within their block only, and bounds found under them are forgotten behind it."""

from __future__ import annotations

import pytest

from fuseline.targets.cpu.kernel_ir.affine import Affine
from fuseline.targets.cpu.kernel_ir.conditions import Conditions
from fuseline.targets.cpu.kernel_ir.types import I64, Value

ATOM = Value("size", I64, (), 0, 0, 0)
FORM = Affine(3, {ATOM: 2})
FACT, OTHER = (Affine(0, {ATOM: 1}), Affine(7)), (Affine(), FORM)


def test_conditions_nest_and_end() -> None:
    known = Conditions()
    with known.assuming([FACT]):
        with known.assuming([OTHER]):
            assert list(known.facts) == [FACT, OTHER]
        with known.unconditionally():
            assert list(known.facts) == []
        assert list(known.facts) == [FACT]
    assert list(known.facts) == []


def test_a_bound_is_searched_once_under_the_same_conditions() -> None:
    known, asked = Conditions(), list[str]()

    def bound(name: str, depth: int = 0, lane: int = 0) -> int | None:
        def search() -> int | None:
            asked.append(name)
            return len(asked)

        return known.found(FORM, lane, depth, search)

    assert (bound("always"), bound("again")) == (1, 1)
    with known.assuming([FACT]):
        assert (bound("assumed"), bound("again")) == (2, 2)
        with known.assuming([]):
            assert bound("no further condition") == 2
        with known.unconditionally():
            assert bound("as outside") == 1
        assert bound("another lane", lane=1) == 3
    assert bound("outside again") == 1
    assert asked == ["always", "assumed", "another lane"]


@pytest.mark.parametrize(("first", "then", "searches"), [(2, 2, 1), (2, 3, 1), (2, 1, 2)])
def test_a_bound_found_deep_in_the_search_is_looked_for_again_nearer_to_its_start(
    first: int, then: int, searches: int
) -> None:
    """A search that had less depth left may have given up."""
    known, asked = Conditions(), list[int]()
    for depth in (first, then):
        known.found(FORM, 0, depth, lambda: asked.append(0))
    assert len(asked) == searches
