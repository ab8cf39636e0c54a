"""Commands find their dispatches."""

from __future__ import annotations

from fuseline.report.launches import dispatches_launched
from fuseline.report.records import DispatchRecord


def _dispatch(name: str, executable: str) -> DispatchRecord:
    return DispatchRecord(name=name, executable=executable, root="contraction", members=[])


def test_launches_of_one_executable_keep_their_order_and_others_have_none() -> None:
    dispatches = [_dispatch("000", "a"), _dispatch("001", "b"), _dispatch("002", "a")]
    found = dispatches_launched(dispatches, ["copy", "a", "b", "a", "a"])
    assert [one and one.name for one in found] == [None, "000", "001", "002", None]
