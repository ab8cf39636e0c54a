"""Which knobs mattered."""

from __future__ import annotations

from fuseline.tuning.importance import importance
from tests.unit.tuning.landscape import KNOBS, LandscapeEvaluator, searched


def test_what_decided_comes_before_what_did_not():
    found = importance(KNOBS, searched(LandscapeEvaluator(), trials=30).trials.trials)
    assert found and abs(sum(found.values()) - 1) < 1e-6
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_few_trials_say_nothing():
    assert importance(KNOBS, searched(LandscapeEvaluator(), trials=3).trials.trials) == {}
