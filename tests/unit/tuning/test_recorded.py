"""Trials as lines, and searches that are replayed from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuseline.errors import FuselineError
from fuseline.tuning.recorded import RecordedEvaluator, TrialLog
from fuseline.tuning.trial import Trial
from tests.unit.tuning.landscape import ABOUT, LandscapeEvaluator, outcome_of, searched, trace


def trial(number: int, **configuration: str) -> Trial:
    return Trial(number=number, configuration=configuration, incumbent={})


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "trials.jsonl"
    with TrialLog(path, ABOUT) as lines:
        for number, configuration in enumerate([{}, {"dedup": "none"}]):
            lines.add(configuration, outcome_of(trial(number, **configuration)))
    return path


def test_outcomes_come_back_as_they_were(log: Path):
    evaluator = RecordedEvaluator(log)
    evaluator.submit(trial(0))
    evaluator.submit(trial(1, dedup="none"))
    assert evaluator.outcome() == outcome_of(trial(0))
    assert evaluator.outcome() == outcome_of(trial(1, dedup="none"))
    assert evaluator.outcome() is None and evaluator.trials == 2 and evaluator.about == ABOUT


def test_other_choices_are_refused(log: Path):
    with pytest.raises(FuselineError, match="E1002.*trial 1 had other choices"):
        RecordedEvaluator(log).submit(trial(1))


def test_a_trial_that_is_not_there_is_refused(log: Path):
    with pytest.raises(FuselineError, match="E1002.*trial 2 is not recorded"):
        RecordedEvaluator(log).submit(trial(2))


@pytest.mark.parametrize("content", [b"", b"text\n", b'{"fuseline": "trials", "version": 2}\n', b'{"a": 1}\n', b"[]\n"])
def test_another_file_is_refused(tmp_path: Path, content: bytes):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(FuselineError, match="E1002"):
        RecordedEvaluator(path)


def test_a_broken_line_is_refused(log: Path):
    log.write_bytes(log.read_bytes()[:-20])
    with pytest.raises(FuselineError, match="E1002.*cannot be read"):
        RecordedEvaluator(log)


def test_a_log_that_is_there_is_not_written_over(log: Path):
    before = log.read_bytes()
    with pytest.raises(FuselineError, match="E0502"):
        TrialLog(log, ABOUT)
    assert log.read_bytes() == before


def test_the_same_seed_and_measurements_give_the_same_trials(tmp_path: Path):
    path = tmp_path / "trials.jsonl"
    with TrialLog(path, ABOUT) as lines:
        first = searched(LandscapeEvaluator(), record=lines.add, trials=18)
    again = searched(RecordedEvaluator(path), trials=18)
    assert trace(again) == trace(first) and again.trials.trials == first.trials.trials


def test_another_seed_does_not_fit(tmp_path: Path):
    path = tmp_path / "trials.jsonl"
    with TrialLog(path, ABOUT) as lines:
        searched(LandscapeEvaluator(), record=lines.add, trials=18)
    with pytest.raises(FuselineError, match="E1002"):
        searched(RecordedEvaluator(path), seed=1)
