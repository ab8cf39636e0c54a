"""Trials on real workers: processes on loopback, of which some are lost, and some are not like the client."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import onnx
import pytest

from fuseline.cluster.connect import connected
from fuseline.cluster.evaluator import ClusterEvaluator, cores_of
from fuseline.cluster.worker_facts import worker_facts
from fuseline.errors import FuselineError
from fuseline.tuning.knob import Knob
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.trial import Trial, TrialOutcome
from tests.graphs.onnx_text import onnx_model
from tests.unit.cluster import injected_runs
from tests.unit.cluster.processes import (
    ABSENT,
    OTHER_ISA,
    OTHER_KIND,
    OTHER_VERSION,
    PATIENCE,
    dask_cluster,
    wait_until,
)

pytest.importorskip("distributed")


def _setting(folder: Path) -> SearchSetting:
    path = folder / "m.onnx"
    onnx.save(onnx_model("(float[2,3] x) => (float[2,3] y) { z = Exp (x) y = Neg (z) }"), path)
    return SearchSetting(model=str(path), options={"threads": 1}, knobs=(), plan=str(folder))


def _trials(count: int) -> list[Trial]:
    return [Trial(number=number, configuration={}, incumbent={}) for number in range(count)]


def _all(evaluator: ClusterEvaluator) -> list[TrialOutcome]:
    found: list[TrialOutcome] = []
    while (outcome := evaluator.outcome()) is not None:
        found.append(outcome)
    return found


def _started(folder: Path, number: int | str = "*") -> list[int]:
    """Process ids of the workers that have begun a trial."""
    return [int(path.name.rpartition("-")[2]) for path in folder.glob(f"started-{number}-*")]


def test_a_killed_worker_others_and_the_scheduler(tmp_path: Path):
    """Two workers that fit, one of another version, one of another kind; one that fits is killed in the middle of a
    trial; at last the scheduler is killed."""
    notices: list[str] = []
    with (
        dask_cluster(tmp_path, "", "") as cluster,
        _evaluator(tmp_path, cluster.address, notices) as evaluator,
    ):
        cluster.join(OTHER_VERSION, OTHER_KIND)  # behind the others: a kind must be there to be asked for
        fitting = {process.pid for process in cluster.workers[:2]}
        for trial in _trials(4):
            evaluator.submit(trial)
        # who starts late is admitted late: `outcome` looks after that
        wait_until(lambda: evaluator.outcome(0.2) is None and len(_started(tmp_path)) == 2 and len(notices) >= 2)
        assert set(_started(tmp_path)) == fitting
        (victim,) = _started(tmp_path, 0)
        os.kill(victim, signal.SIGKILL)
        (tmp_path / "go").touch()
        outcomes = _all(evaluator)
        assert sorted(outcome.number for outcome in outcomes) == [0, 1, 2, 3]
        assert {outcome.state for outcome in outcomes} == {"complete"}
        assert {outcome.machine for outcome in outcomes} == {evaluator.kind}
        assert {int(outcome.worker) for outcome in outcomes} == fitting - {victim}
        assert len(_started(tmp_path, 0)) == 2 and evaluator.capacity == 1
        assert any("fuseline 0.0.9 there" in line for line in notices)
        assert any("another kind of machine (x86_64-avx2 another CPU" in line for line in notices)

        (tmp_path / "go").unlink()
        evaluator.submit(Trial(number=4, configuration={}, incumbent={}))
        wait_until(lambda: _started(tmp_path, 4))
        cluster.scheduler.kill()
        with pytest.raises(FuselineError) as raised:
            evaluator.outcome()
        assert raised.value.code == "E1101" and cluster.address in str(raised.value)


def _evaluator(folder: Path, address: str, notices: list[str]) -> ClusterEvaluator:
    kind = worker_facts()["kind"]
    return ClusterEvaluator(_setting(folder), address, kind=kind, notice=notices.append, run=injected_runs.when_told)


@pytest.mark.slow
def test_nobody_fits(tmp_path: Path):
    with dask_cluster(tmp_path, OTHER_ISA, OTHER_VERSION, ABSENT) as cluster:
        with connected(cluster.address, timeout=PATIENCE) as client:
            client.wait_for_workers(3, timeout=PATIENCE)
        with pytest.raises(FuselineError) as raised:
            ClusterEvaluator(_setting(tmp_path), cluster.address, patience=0.0)
    assert raised.value.code == "E1102"
    for reason in ("aarch64", "fuseline 0.0.9 there", "no fuseline there"):
        assert reason in raised.value.message


@pytest.mark.slow
def test_a_scheduler_without_workers(tmp_path: Path):
    with dask_cluster(tmp_path) as cluster, pytest.raises(FuselineError) as raised:
        ClusterEvaluator(_setting(tmp_path), cluster.address, patience=1.0)
    assert raised.value.code == "E1102" and cluster.address in (raised.value.hint or "")


@pytest.mark.slow
def test_a_trial_that_ends_workers_is_given_up(tmp_path: Path):
    """Workers of a local cluster come back; the trial that ends them fails, the others are run."""
    with ClusterEvaluator(_setting(tmp_path), "local", run=injected_runs.ends_its_worker) as evaluator:
        for trial in _trials(4):
            evaluator.submit(trial)
        outcomes = {outcome.number: outcome for outcome in _all(evaluator)}
    assert sorted(outcomes) == [0, 1, 2, 3]
    failed = outcomes.pop(1)
    assert failed.state == "failed" and failed.error is not None and failed.error["code"] == "E1103"
    assert {outcome.state for outcome in outcomes.values()} == {"complete"}


@pytest.mark.slow
def test_real_trials_on_local_workers(tmp_path: Path):
    """Compiled, checked and timed, on cores that workers hold."""
    setting = _setting(tmp_path)
    knob = Knob("dedup", "dedup", ("constants", "none"))
    setting = SearchSetting(model=setting.model, options={"threads": 1}, knobs=(knob,), rounds=4)
    with ClusterEvaluator(setting, "local") as evaluator:
        for number, choice in enumerate(("none", "constants", "no such choice")):
            evaluator.submit(Trial(number=number, configuration={"dedup": choice}, incumbent={}, budget_seconds=0.3))
        outcomes = {outcome.number: outcome for outcome in _all(evaluator)}
        assert evaluator.outcome() is None
    assert outcomes[0].state in ("complete", "pruned") and outcomes[0].ratio is not None
    assert outcomes[1].state in ("complete", "pruned") and outcomes[1].seconds > 0
    assert outcomes[2].state == "failed" and (outcomes[2].error or {})["code"] == "E0501"
    assert {outcome.machine for outcome in outcomes.values()} == {evaluator.kind}


@pytest.mark.slow
def test_a_coded_error_and_another_kind(tmp_path: Path):
    for run, code in ((injected_runs.refuses, "E0105"), (injected_runs.elsewhere, "E1102")):
        with ClusterEvaluator(_setting(tmp_path), "local", run=run) as evaluator:
            evaluator.submit(_trials(1)[0])
            (outcome,) = _all(evaluator)
        assert outcome.state == "failed" and (outcome.error or {})["code"] == code
        assert outcome.machine == evaluator.kind


def test_nobody_at_the_address(tmp_path: Path):
    with pytest.raises(FuselineError) as raised:
        ClusterEvaluator(_setting(tmp_path), "127.0.0.1:8786")
    assert raised.value.code == "E1101"


def test_a_model_that_is_not_there():
    with pytest.raises(FuselineError) as raised:
        ClusterEvaluator(SearchSetting(model="none.onnx", options={}, knobs=()), "local")
    assert raised.value.code == "E0101"


def test_cores_of_a_trial():
    threads = Knob("threads", "threads", ("4", "1", "2"))
    assert cores_of(SearchSetting(model="m", options={}, knobs=(threads,))) == 4
    assert cores_of(SearchSetting(model="m", options={"threads": 2}, knobs=(threads,))) == 2
    assert cores_of(SearchSetting(model="m", options={}, knobs=())) == 1
