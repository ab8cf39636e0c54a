"""Which pairs of ops a plan keeps apart so that one merge is not made, and no other is lost."""

from __future__ import annotations

from fuseline.ir.fuel import Decision
from fuseline.verify.bisect.forbidden_merge import pairs_apart


def _merges(*ops: str) -> list[Decision]:
    return [Decision("fusion", number, "rule", tuple(f"k.{op}" for op in names)) for number, names in enumerate(ops)]


def test_the_two_ends_of_an_edge():
    made = _merges("ab", "bc")
    assert pairs_apart(made[1], made) == [("b", "c")]


def test_what_is_together_before_stays_together():
    made = [*_merges("ab", "cd", "bcd"), Decision("kernel", 0, "family", ("k.b", "k.c"))]
    assert pairs_apart(made[2], made) == [("b", "c"), ("b", "d")]


def test_what_came_together_by_way_of_others():
    made = _merges("ab", "cd", "bc", "ade")
    assert pairs_apart(made[3], made) == [("a", "e"), ("d", "e")]


def test_merges_behind_it_do_not_count():
    made = _merges("ab", "bc", "ab")
    assert pairs_apart(made[0], made) == [("a", "b")]


def test_arms_are_all_kept_from_each_other():
    made = _merges("abc")
    assert pairs_apart(made[0], made) == [("a", "b"), ("a", "c"), ("b", "c")]
