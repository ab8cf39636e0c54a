"""Attributes computed once."""

from __future__ import annotations

from fuseline.passes.fusion.cached import cached


class Counter:
    """Counts how often it computes."""

    def __init__(self, start: int) -> None:
        self.asked = start

    @cached
    def number(self) -> int:
        """The number."""
        self.asked += 1
        return self.asked


def test_each_object_computes_once():
    first, second = Counter(1), Counter(5)
    assert (first.number, first.number, second.number) == (2, 2, 6)
    assert first.asked == 2


def test_the_class_has_the_documentation():
    assert Counter.number.__doc__ == "The number."
