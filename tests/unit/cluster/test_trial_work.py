"""Trials as a worker runs them: in a process of the search, on cores that it holds."""

from __future__ import annotations

import uuid
from pathlib import Path

import onnx
import pytest

from fuseline.cluster import cores, trial_work
from fuseline.cluster.shipment import model_shipment
from fuseline.cluster.shipped_options import shipped_options
from fuseline.cluster.trial_work import TrialWork, end_search, run_trial, start_early
from fuseline.cluster.worker_facts import worker_facts
from fuseline.errors import FuselineError
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.trial import Trial
from tests.graphs.onnx_text import onnx_model
from tests.unit.cluster.processes import wait_until


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrialWork:
    """A search on a target without code, for which nobody else holds cores."""
    monkeypatch.setattr(cores, "_NAME", f"\0fuseline-test-{uuid.uuid4().hex}-{{}}")
    onnx.save(onnx_model("(float[2,3] x) => (float[2,3] y) { y = Exp (x) }"), tmp_path / "m.onnx")
    setting = SearchSetting(model=str(tmp_path / "m.onnx"), options={}, knobs=())
    sent = model_shipment(tmp_path / "m.onnx")
    return TrialWork("search", setting, sent, shipped_options({"target": "null"}), 1)


def test_trials_share_a_process_while_the_search_goes_on(work: TrialWork, monkeypatch: pytest.MonkeyPatch):
    first, second = (run_trial(work, Trial(number=n, configuration={}, incumbent={})) for n in range(2))
    assert first.state == second.state == "complete" and (first.number, second.number) == (0, 1)
    assert first.worker == second.worker and first.machine == worker_facts()["kind"]
    monkeypatch.setattr(trial_work, "IDLE_SECONDS", 0.0)
    assert run_trial(work, Trial(number=1, configuration={}, incumbent={})).worker == first.worker
    wait_until(lambda: trial_work._searches["search"].evaluator is None)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(trial_work, "IDLE_SECONDS", 120.0)
    third = run_trial(work, Trial(number=2, configuration={}, incumbent={}))
    assert third.state == "complete" and third.worker != first.worker
    trial_work._searches["search"].over.set()  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(FuselineError) as raised:
        run_trial(work, Trial(number=3, configuration={}, incumbent={}))
    assert raised.value.code == "E1103"
    end_search("search")
    end_search("nobody's")
    assert not trial_work._searches  # pyright: ignore[reportPrivateUsage]


def test_a_process_that_starts_early_is_that_of_the_first_trial(work: TrialWork):
    start_early(work)
    search = trial_work._searches["search"]  # pyright: ignore[reportPrivateUsage]
    wait_until(lambda: search.evaluator is not None and search.evaluator._process is not None)  # pyright: ignore
    process = search.evaluator._process  # pyright: ignore
    found = run_trial(work, Trial(number=0, configuration={}, incumbent={}))
    assert found.state == "complete" and found.worker.endswith(f":{process.pid}")  # pyright: ignore
    end_search("search")
    wait_until(lambda: search.evaluator is None)


def test_a_search_that_ends_while_its_process_gets_ready_leaves_none(work: TrialWork):
    start_early(work)
    search = trial_work._searches["search"]  # pyright: ignore[reportPrivateUsage]
    end_search("search")
    wait_until(lambda: not search.lock.locked() and search.evaluator is None)
    assert not trial_work._searches  # pyright: ignore[reportPrivateUsage]
