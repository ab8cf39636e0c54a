"""What records tell of a program without a run."""

from __future__ import annotations

from pathlib import Path

import pytest

import fuseline
from fuseline.report.records import CompileRecord, DispatchRecord, MemberRecord
from fuseline.tuning.objectives import dispatch_key, objectives, predicted_seconds
from tests.draws import RNG
from tests.unit.tuning.realisations import written


def _dispatch(*ids: str, ns: float = 0.0) -> DispatchRecord:
    members = [MemberRecord(id=id, kind="elementwise", role="member") for id in ids]
    return DispatchRecord(name="000_x", executable="e", root="elementwise", members=members, predicted_ns=ns)


def test_a_dispatch_is_called_by_its_members():
    assert dispatch_key(_dispatch("a.1", "b.2")) == "a.1+b.2"


def test_predictions_of_one_key_add_up():
    found = predicted_seconds([_dispatch("a", ns=1000), _dispatch("b", ns=500), _dispatch("a", ns=1000)])
    assert found == pytest.approx({"a": 2e-6, "b": 5e-7})


def test_of_a_real_compile(tmp_path: Path):
    program = fuseline.compile(written(tmp_path, w=RNG.standard_normal((8, 16)).astype("f4")), target="null")
    found = objectives(program.record)
    assert found["dispatches"] == len(found["predicted_seconds"]) == len(program.record.dispatches) > 0
    assert all(seconds > 0 for seconds in found["predicted_seconds"].values())


def test_what_only_a_run_tells_is_nothing():
    record = CompileRecord(statistics={"transient_bytes": "64*n", "code_bytes": 120})
    found = objectives(record)
    assert (found["transient_bytes"], found["code_bytes"], found["dispatches"]) == (0, 120, 0)
