"""Predictions as trials."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from fuseline.tuning.predicted_evaluator import PredictedEvaluator
from fuseline.tuning.space import search_space
from fuseline.tuning.trial import Trial
from tests.small_models import mlp


def test_the_time_is_the_sum_of_what_dispatches_are_predicted(tmp_path: Path):
    onnx.save(mlp(), tmp_path / "m.onnx")
    space = search_space(tmp_path / "m.onnx", {"target": "null"}, ["plan", "passes"])
    evaluator = PredictedEvaluator(space.setting)
    assert evaluator.outcome() is None
    evaluator.submit(Trial(number=4, configuration={}, incumbent={}))
    found = evaluator.outcome(0.0)
    assert found is not None and found.number == 4 and found.ratio is None
    total = sum(dispatch.predicted_ns for dispatch in space.default.record.dispatches)
    assert found.seconds == pytest.approx(total * 1e-9) and len(found.predicted_seconds) == found.dispatches
    evaluator.close()
