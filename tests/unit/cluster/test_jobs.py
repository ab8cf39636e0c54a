"""Each job counts once, whatever happens to workers."""

from __future__ import annotations

from typing import Any

import pytest
from distributed import KilledWorker

from fuseline.cluster import jobs as jobs_module
from fuseline.cluster.admission import wanted
from fuseline.cluster.jobs import Jobs, NotPreparedError
from fuseline.cluster.team import Team
from fuseline.cluster.worker_facts import worker_facts
from fuseline.errors import FuselineError
from tests.unit.cluster.fake_client import FakeClient


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(jobs_module, "_LOOK_SECONDS", 0.0)


def _jobs(client: FakeClient, losses: int = 3) -> Jobs[int]:
    taken: Any = client
    team = Team(taken, wanted("null"), patience=0.0)
    team.gather()
    return Jobs(team, losses)


def _double(value: int) -> int:
    return 2 * value


def test_one_at_a_time_for_each_worker():
    client = FakeClient("a", "b")
    jobs = _jobs(client)
    for number in range(3):
        jobs.submit(number, _double, number)
    first, second = client.futures
    assert {first.worker, second.worker} == {"a", "b"} and jobs.open == 3
    assert jobs.done(0.0) is None
    second.finish()
    done = jobs.done(0.0)
    assert done is not None and (done.number, done.result, done.error, done.worker) == (1, 2, None, second.worker)
    third = client.futures[2]
    assert third.worker == second.worker
    third.finish()
    first.finish()
    assert {jobs.done().result, jobs.done().result} == {4, 0}  # pyright: ignore[reportOptionalMemberAccess]
    assert jobs.done() is None and jobs.open == 0


def test_a_lost_worker_and_its_late_answer():
    client = FakeClient("a", "b")
    jobs = _jobs(client)
    jobs.submit(7, _double, 7)
    (first,) = client.futures
    del client.answers[first.worker]
    assert jobs.done(0.0) is None
    second = client.futures[1]
    assert second.worker != first.worker and first.was_cancelled and second.key != first.key
    first.finish()  # late
    assert jobs.done(0.0) is None
    second.finish()
    done = jobs.done(0.0)
    assert done is not None and (done.number, done.result) == (7, 14)
    first.finish()
    assert jobs.done(0.0) is None


def test_a_result_that_went_with_its_worker():
    client = FakeClient("a", "b")
    jobs = _jobs(client)
    jobs.submit(1, _double, 1)
    (first,) = client.futures
    del client.answers[first.worker]
    first.lose()
    assert jobs.done(0.0) is None
    client.futures[1].finish()
    assert jobs.done(0.0).result == 2  # pyright: ignore[reportOptionalMemberAccess]


def test_who_loses_worker_after_worker_is_given_up():
    client = FakeClient("a")
    jobs = _jobs(client)
    jobs.submit(0, _double, 0)
    jobs.submit(1, _double, 1)
    for loss in range(3):
        assert jobs.done(0.0) is None
        victim = client.futures[-1].worker
        del client.answers[victim]
        client.answers[f"again{loss}"] = worker_facts()
    done = jobs.done(0.0)
    assert done is not None and done.number == 0 and done.error is not None and done.error.code == "E1103"
    client.futures[-1].finish()
    assert jobs.done(0.0).result == 2  # pyright: ignore[reportOptionalMemberAccess]


@pytest.mark.parametrize("problem", [KilledWorker("k", None, 0), NotPreparedError("m.onnx")])  # pyright: ignore
def test_what_counts_as_lost(problem: Exception):
    client = FakeClient("a")
    jobs = _jobs(client, losses=2)
    jobs.submit(0, _double, 3)
    client.futures[0].finish(problem)
    while len(client.futures) == 1:  # NotPreparedError: prepared again first
        assert jobs.done(0.0) is None
    client.futures[1].finish()
    assert jobs.done(0.0).result == 6  # pyright: ignore[reportOptionalMemberAccess]
    jobs.submit(1, _double, 3)
    client.futures[2].finish(problem)
    while len(client.futures) == 3:
        assert jobs.done(0.0) is None
    client.futures[3].finish(problem)
    done = jobs.done(0.0)
    assert done is not None and done.error is not None and done.error.code == "E1103"


@pytest.mark.parametrize(
    ("problem", "code"), [(FuselineError("E0105", "m"), "E0105"), (KeyError("k"), "E0901"), (TimeoutError(), "E0901")]
)
def test_what_a_job_raises_is_its_answer(problem: Exception, code: str):
    client = FakeClient("a")
    jobs = _jobs(client)
    jobs.submit(5, _double, 3)
    client.futures[0].finish(problem)
    done = jobs.done(0.0)
    assert done is not None and done.number == 5 and done.error is not None and done.error.code == code


def test_all_are_given_up():
    client = FakeClient("a")
    jobs = _jobs(client)
    jobs.submit(0, _double, 0)
    jobs.submit(1, _double, 1)
    jobs.cancel()
    assert client.futures[0].was_cancelled and jobs.open == 0 and jobs.done() is None


def test_the_last_worker_and_the_scheduler():
    client = FakeClient("a")
    jobs = _jobs(client)
    jobs.submit(0, _double, 0)
    client.answers.clear()
    with pytest.raises(FuselineError) as raised:
        jobs.done()
    assert raised.value.code == "E1102"
    client.status = "closed"
    with pytest.raises(FuselineError) as raised:
        jobs.done()
    assert raised.value.code == "E1101"
