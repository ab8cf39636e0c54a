"""Trials in a process of their own: what ends or hangs there is an outcome here, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fuseline.tuning.local_evaluator import LocalEvaluator
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.trial import Trial, TrialOutcome
from tests.draws import RNG
from tests.unit.tuning.realisations import harmful, written

PATIENCE = 250.0


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return written(tmp_path, w=RNG.standard_normal((8, 16)).astype("f4"))


@contextmanager
def _evaluator(model: Path, limit: float = PATIENCE) -> Generator[LocalEvaluator]:
    setting = SearchSetting(model=str(model), options={"target": "interpreter"}, knobs=(), rounds=6)
    with LocalEvaluator(setting, harmful, limit_seconds=limit) as evaluator:
        yield evaluator


def _trial(number: int, **configuration: str) -> Trial:
    return Trial(number=number, configuration=configuration, incumbent={}, budget_seconds=0.0)


def _outcome(evaluator: LocalEvaluator) -> TrialOutcome:
    found = evaluator.outcome(PATIENCE)
    assert found is not None
    return found


def _process_of(outcome: TrialOutcome) -> int:
    return int(outcome.worker.rpartition(":")[2])


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_trials_run_elsewhere_one_after_the_other(model: Path):
    with _evaluator(model) as evaluator:
        assert evaluator.capacity == 1 and evaluator.outcome(0.0) is None
        evaluator.submit(_trial(7))
        evaluator.submit(_trial(8, harm="raise"))
        first, second = _outcome(evaluator), _outcome(evaluator)
        assert (first.number, first.state) == (7, "complete")
        assert (second.number, second.state) == (8, "failed")
        assert _process_of(first) == _process_of(second) != os.getpid()
        assert evaluator.outcome(None) is None  # none is on its way
    assert not _is_alive(_process_of(first))


@pytest.mark.parametrize(("harm", "words"), [("fault", "SIGSEGV"), ("exit", "status 3")])
def test_a_trial_that_ends_its_process_fails_and_the_next_one_runs(model: Path, harm: str, words: str):
    with _evaluator(model) as evaluator:
        evaluator.submit(_trial(1, harm=harm))
        evaluator.submit(_trial(2))
        failed, next_ = _outcome(evaluator), _outcome(evaluator)
    assert failed.state == "failed" and failed.error is not None and failed.error["code"] == "E0604"
    assert words in failed.error["message"] and failed.error["node"] == "trial 1" and failed.machine
    assert (next_.number, next_.state) == (2, "complete")


def test_a_process_that_is_killed_between_trials_is_replaced(model: Path):
    with _evaluator(model) as evaluator:
        evaluator.submit(_trial(1))
        os.kill(_process_of(_outcome(evaluator)), signal.SIGKILL)
        assert evaluator._process is not None  # pyright: ignore[reportPrivateUsage]
        while not evaluator._process.gone:  # pyright: ignore[reportPrivateUsage]
            time.sleep(0.01)
        evaluator.submit(_trial(2))
        assert _outcome(evaluator).state == "complete"


def test_a_trial_that_hangs_is_ended(model: Path):
    with _evaluator(model, limit=1.0) as evaluator:
        evaluator.submit(_trial(1, harm="hang"))
        found = evaluator.outcome(0.05) or _outcome(evaluator)
    assert found.state == "failed" and found.error is not None and found.error["code"] == "E0605"


def test_closing_ends_what_runs_and_removes_its_files(model: Path):
    with _evaluator(model) as evaluator:
        folder, process = Path(evaluator._folder.name), evaluator._process  # pyright: ignore[reportPrivateUsage]
        evaluator.submit(_trial(1, harm="hang"))
        process = evaluator._process  # pyright: ignore[reportPrivateUsage]
        assert process is not None and _is_alive(process.pid) and folder.is_dir()
    assert not _is_alive(process.pid) and not folder.exists()
    assert evaluator.outcome(1.0) is None
    evaluator.close()


def test_an_interrupt_reaches_the_search_alone(model: Path):
    """Ctrl-C goes to the terminal's processes: the trial's is in a session of its own."""
    with _evaluator(model) as evaluator:
        evaluator.submit(_trial(1))
        assert os.getsid(_process_of(_outcome(evaluator))) != os.getsid(0)


def test_its_process_is_ready_before_the_first_trial(model: Path):
    with _evaluator(model) as evaluator:
        evaluator.get_ready()
        evaluator.get_ready()
        process = evaluator._process  # pyright: ignore[reportPrivateUsage]
        assert process is not None and evaluator.outcome(0.0) is None
        evaluator.submit(_trial(0))
        found = _outcome(evaluator)
        assert found.state == "complete" and _process_of(found) == process.pid


def test_getting_ready_may_fail_and_be_given_up(model: Path):
    setting = SearchSetting(model=str(model.parent / "none.onnx"), options={"target": "interpreter"}, knobs=())
    with LocalEvaluator(setting, harmful) as evaluator:
        evaluator.get_ready()
        evaluator.submit(_trial(0))
        assert (_outcome(evaluator).error or {})["code"] == "E0101"
    with _evaluator(model) as evaluator:
        evaluator.get_ready(lambda: True)
        evaluator.submit(_trial(0))
        assert _outcome(evaluator).state == "complete"
