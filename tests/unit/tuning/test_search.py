"""The search, on a landscape whose optimum is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuseline.errors import FuselineError
from fuseline.tuning.goal import Goal
from fuseline.tuning.trial import Trial, TrialOutcome
from tests.unit.tuning.landscape import BROKEN, GOOD, KNOBS, LandscapeEvaluator, searched, trace


@pytest.mark.parametrize(("seed", "attributed"), [(0, True), (1, False)])
def test_the_optimum_is_found(seed: int, attributed: bool):
    result = searched(LandscapeEvaluator(attributed=attributed), seed=seed, trials=24)
    assert result.trials.best is not None and dict(result.trials.best.configuration) == GOOD


def test_choices_about_different_dispatches_are_judged_together():
    """Nine choices and the default, in fewer trials than that: then what gained is combined at once."""
    result = searched(LandscapeEvaluator(), trials=8)
    assert result.trials.best is not None and dict(result.trials.best.configuration) == GOOD


def test_no_trial_is_run_twice_and_what_failed_is_counted():
    result = searched(LandscapeEvaluator(), trials=26)
    assert len(set(trace(result))) == len(trace(result))
    broken = [told for told in result.trials.trials if told.outcome.state == "failed"]
    assert 1 <= len(broken) <= 3 and result.trials.count("failed") == len(broken)
    assert all(BROKEN.items() <= told.configuration.items() for told in broken)


def test_a_small_space_is_searched_to_its_end():
    knobs = KNOBS[:3]
    result = searched(LandscapeEvaluator(), trials=10_000, knobs=knobs)
    assert result.ended == "searched" and len(result.trials.trials) <= 2 ** len(knobs)


@pytest.mark.parametrize("capacity", [3])
def test_the_order_of_arrival_changes_nothing(capacity: int):
    traces = [
        trace(searched(LandscapeEvaluator(capacity, shuffle=i), window=2 * capacity, trials=20)) for i in range(2)
    ]
    assert traces[0] == traces[1]


def test_another_seed_is_another_search():
    first, second = (trace(searched(LandscapeEvaluator(), seed=s)) for s in (0, 1))
    assert first != second and first[:5] == second[:5]


@pytest.mark.parametrize("at", [pytest.param(1, marks=pytest.mark.slow), 14])
def test_an_interrupted_search_goes_on_as_if_nothing_had_been(tmp_path: Path, at: int):
    whole = searched(LandscapeEvaluator(2), window=4, trials=20)
    part = searched(LandscapeEvaluator(2, crashes_at=at), tmp_path / "part.db", window=4, trials=20)
    assert part.ended == "interrupted" and len(part.trials.trials) <= at
    evaluator = LandscapeEvaluator(2)
    again = searched(evaluator, tmp_path / "part.db", resume=True, window=4, trials=20)
    assert trace(again) == trace(whole)
    assert len(evaluator.submitted) >= len(trace(whole)) - at
    assert not {trial.number for trial in evaluator.submitted} & {told.number for told in part.trials.trials}


def test_a_front_of_time_and_memory():
    goal = Goal(("time", "transient_bytes"))
    front = searched(LandscapeEvaluator(), trials=30, goal=goal).trials.front()
    values = [told.values for told in front if told.values is not None]
    assert len(values) > 1 and values == sorted(values)
    assert [memory for _, memory in values] == sorted((memory for _, memory in values), reverse=True)


def test_memory_alone():
    result = searched(LandscapeEvaluator(), trials=30, goal=Goal(("transient_bytes",)))
    best = result.trials.best
    assert best is not None and best.values == (500.0,)


def test_a_default_that_fails_ends_the_search_with_its_error():
    class Failing(LandscapeEvaluator):
        def outcome(self, timeout: float | None = None) -> TrialOutcome | None:
            found = super().outcome(timeout)
            error = {"code": "E0106", "message": "no such operator", "node": "Foo_1"}
            return found and TrialOutcome(number=found.number, state="failed", error=error)

    with pytest.raises(FuselineError, match="E0106.*Foo_1.*no such operator"):
        searched(Failing())


def test_trials_are_compared_with_the_best_so_far():
    evaluator = LandscapeEvaluator()
    result = searched(evaluator, trials=12)
    by_number: dict[int, Trial] = {trial.number: trial for trial in evaluator.submitted}
    for told in result.trials.trials:
        assert by_number[told.number].incumbent == result.trials.trials[told.against].configuration
    assert any(told.against for told in result.trials.trials)
