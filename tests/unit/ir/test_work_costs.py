"""The time of a dispatch from its work, and the part of it that the busiest thread does."""

from __future__ import annotations

import pytest

from fuseline.ir.work_costs import (
    ASSUMED_WORK_COSTS,
    KINDS,
    WorkCosts,
    filtered_work,
    overlapped,
    predicted_ns,
    share_of,
)


def test_a_dispatch_takes_its_launch_and_what_its_busiest_thread_does():
    costs = WorkCosts(launch=100, barrier=40, product=0.5, bytes=0.25)
    assert predicted_ns({}, costs) == 100
    assert predicted_ns({"product": 10, "points": 0}, costs) == 105
    assert predicted_ns({"product": 10}, costs, 0.5) == 142.5


def test_streams_hide_behind_arithmetic_and_arithmetic_behind_streams():
    costs = WorkCosts(launch=0, product=1.0, bytes=1.0, far=1.0, constant_bytes=1.0)
    alone = predicted_ns({"product": 100, "constant_bytes": 20}, costs)
    assert alone == pytest.approx(120)  # constants are read in step with the arithmetic
    assert alone < predicted_ns({"product": 100, "constant_bytes": 20, "bytes": 30}, costs) < alone + 6
    assert 1000 < predicted_ns({"bytes": 900, "far": 100, "product": 100}, costs) < 1006
    even = predicted_ns({"bytes": 100, "product": 100}, costs)
    assert 100 < even < 200 and even == pytest.approx(overlapped(100.0, 100.0))


def test_minimal_filtering_is_counted_in_whole_tiles():
    exact = filtered_work(49, 36, 8, 16)  # 28x28 pixels in tiles of 4x4
    assert exact["filtered"] == 2 * 28 * 28 * 9 * 8 * 16


def test_every_kind_of_work_has_a_cost():
    assert all(predicted_ns({kind: 1e6}, ASSUMED_WORK_COSTS) > ASSUMED_WORK_COSTS.launch for kind in KINDS)
    assert "launch" not in KINDS and "barrier" not in KINDS


def test_workgroups_are_shared_out_as_evenly_as_they_can_be():
    assert share_of(1, 7) == 1 and share_of(2, 7) == 4 / 7 and share_of(4, 3) == 1 / 3
    assert share_of(2, 0) == 1 and share_of(0, None) == 1 and share_of(8, None) == 1 / 8
