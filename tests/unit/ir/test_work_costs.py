"""The time of a dispatch from its work, and the part of it that the busiest thread does."""

from __future__ import annotations

from fuseline.ir.work_costs import ASSUMED_WORK_COSTS, KINDS, WorkCosts, predicted_ns, share_of


def test_a_dispatch_takes_its_launch_and_what_its_busiest_thread_does():
    costs = WorkCosts(launch=100, barrier=40, product=0.5, bytes=0.25)
    assert predicted_ns({}, costs) == 100
    assert predicted_ns({"product": 10, "bytes": 8}, costs) == 107
    assert predicted_ns({"product": 10, "bytes": 8}, costs, 0.5) == 143.5


def test_every_kind_of_work_has_a_cost():
    assert all(predicted_ns({kind: 1e6}, ASSUMED_WORK_COSTS) > ASSUMED_WORK_COSTS.launch for kind in KINDS)
    assert "launch" not in KINDS and "barrier" not in KINDS


def test_workgroups_are_shared_out_as_evenly_as_they_can_be():
    assert share_of(1, 7) == 1 and share_of(2, 7) == 4 / 7 and share_of(4, 3) == 1 / 3
    assert share_of(2, 0) == 1 and share_of(0, None) == 1 and share_of(8, None) == 1 / 8
