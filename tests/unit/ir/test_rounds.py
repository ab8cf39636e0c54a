"""Loops with a limit: they leave in time, or say which loop it was."""

from __future__ import annotations

import pytest

from fuseline.errors import FuselineError
from fuseline.ir.rounds import rounds


def test_as_many_rounds_as_allowed_and_the_one_that_finds_nothing():
    left = 5
    for _ in rounds("a countdown", most=5):
        if left == 0:
            break
        left -= 1
    assert left == 0


def test_a_loop_that_does_not_end_is_named():
    with pytest.raises(FuselineError, match="a treadmill") as raised:
        for _ in rounds("a treadmill", most=5):
            pass
    assert raised.value.code == "E0901"
