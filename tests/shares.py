"""Which tests a default session runs: all that are quick, and of those that take long a share that its seed draws.

    CPU seconds    <.1   .1   .15   1    4         `cpu_seconds.json` has them
    one session in   1     2    3    5    5

A twentieth of the tests takes most of the time, so that a default session runs most tests in half of it.
`make test-all`, and a file or a test that is named, run whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests import draws

AFFORDED_SECONDS = 0.05
"""What a test takes of a session on average, at the most."""

LONGEST_INTERVAL = 5
"""Every test runs in one session of so many at the least, on average."""


def interval(seconds: float) -> float:
    """A test of so many CPU seconds runs in one session of how many."""
    return min(max(1.0, seconds / AFFORDED_SECONDS), LONGEST_INTERVAL)


def is_drawn(test: str, seconds: Mapping[str, float]) -> bool:
    """Whether the session's seed draws a test, by its id; `seconds` are those of functions."""
    return draws.generator(test).random() * interval(seconds.get(function_of(test), 0.0)) < 1


def function_of(test: str) -> str:
    """The id of a test without its variation."""
    return test.partition("[")[0]
