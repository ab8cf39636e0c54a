"""Data frames of a record."""

from __future__ import annotations

import sys

import pytest

from fuseline.errors import FuselineError
from fuseline.report.frames import decisions_frame, dispatches_frame
from fuseline.report.records import CompileRecord
from tests.unit.report.records import RECORD


def test_a_row_per_decision_and_dispatch() -> None:
    pytest.importorskip("pandas")
    decisions = decisions_frame(RECORD)
    assert list(decisions["verdict"]) == [decision.verdict for decision in RECORD.decisions]
    assert decisions["bytes_saved"].iloc[1] == 1_200_000 and decisions["bytes_saved"].isna().iloc[0]
    dispatches = dispatches_frame(RECORD)
    assert list(dispatches["members"]) == [2, 1] and dispatches["nodes"].iloc[0] == ("Conv_0", "Relu_1")
    assert len(decisions_frame(CompileRecord())) == 0 and "root" in dispatches_frame(CompileRecord()).columns


def test_without_pandas_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    for make in (decisions_frame, dispatches_frame):
        with pytest.raises(FuselineError, match="need pandas") as caught:
            make(RECORD)
        assert caught.value.code == "E0503" and caught.value.hint == "pip install pandas"
