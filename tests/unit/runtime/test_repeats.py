"""What the host does with the programs of a loop, on programs that are plain functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fuseline.errors import FuselineError
from fuseline.runtime.repeats import repeat


def _body(name: str, inputs: Sequence[Any]) -> list[Any]:
    assert name == "body"
    counter, total, by = inputs
    return [total + counter * by]


def test_a_counted_loop():
    header = {"counted": True, "states": 1, "reads": {"body": [0, 1, 2]}}
    assert repeat(header, _body, [np.array(2), np.array(9), np.array(3), np.array(1), np.array(10)]) == [151]
    assert repeat(header, _body, [np.array(9), np.array(2), np.array(3), np.array(1), np.array(10)]) == [1]
    with pytest.raises(FuselineError, match="steps of -1"):
        repeat(header, _body, [np.array(9), np.array(2), np.array(-1), np.array(1), np.array(10)])


def _swapping(name: str, inputs: Sequence[Any]) -> list[Any]:
    if name == "before":
        first, limit = inputs
        return [np.array(first < limit), first * 100]
    second, first = inputs
    return [second, first // 100 + 1]


def test_what_is_handed_on_is_what_the_results_are():
    header = {
        "counted": False,
        "states": 2,
        "reads": {"before": [1, 2], "body": [0, 1]},
        "forward": [["slot", 0], ["value", 0]],
    }
    assert repeat(header, _swapping, [7, 0, 3]) == [7, 300]
