"""A model is predicted by costs that never saw it, and how well is said of it alone."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.ir.work_costs import WorkCosts
from fuseline.tuning.fit import validation
from fuseline.tuning.fit.classes import Array, Classes, classes_of, vector_of
from fuseline.tuning.fit.validation import POOLED, cross_validated, quality, rank_correlation
from tests.unit.tuning.fit.measured import TRUE, program

START = WorkCosts()


def test_a_model_is_left_out_in_all_its_compiles(monkeypatch: pytest.MonkeyPatch):
    seen: list[set[str]] = []

    def solved(programs: list[Classes], start: WorkCosts) -> Array:
        seen.append({one.digest for one in programs})
        return vector_of(start)

    monkeypatch.setattr(validation, "solved", solved)
    records = [program("a"), program("a", threads=2), program("b"), program("c", fusion="none")]
    cross_validated(classes_of(records), START, START)
    assert seen == [{"b", "c"}, {"a", "c"}, {"a", "b"}]


def test_a_model_of_another_world_is_predicted_badly_after_all_the_others():
    """Were it in its own fit, its costs would fit it."""
    odd = WorkCosts(launch=300, product=0.2, filtered=0.06, operations=3e-4, bytes=1e-4)
    rows = cross_validated(
        classes_of([program("a", 30), program("b", 30), program("odd", 30, costs=odd)]), START, START
    )
    by_model = {row.model: row for row in rows}
    assert by_model["odd.onnx"].after.error > 0.5


def test_it_gets_better_where_the_others_tell():
    rows = cross_validated(classes_of([program(f"m{i}", 25) for i in range(5)]), START, START)
    assert len(rows) == 5
    for row in rows:
        assert row.after.error < 0.1 < row.before.error and row.after.correlation > 0.99, row


def test_programs_of_few_dispatches_are_one_row_per_number_of_threads():
    records = [program("a", 30), program("b", 30), program("x", 3), program("y", 4), program("z", 2, threads=2)]
    rows = cross_validated(classes_of(records), START, START)
    assert [(row.model, row.threads, row.dispatches) for row in rows][-2:] == [(POOLED, 1, 7), (POOLED, 2, 2)]


def test_ranks_of_equal_values_are_their_mean():
    first, second = np.array([1.0, 1.0, 2.0, 3.0]), np.array([5.0, 6.0, 7.0, 8.0])
    assert rank_correlation(first, second) == pytest.approx(0.9486833)
    assert rank_correlation(-first, second) == pytest.approx(-0.9486833)
    assert np.isnan(rank_correlation(np.ones(3), np.arange(3.0)))


def test_quality_is_of_the_ratio():
    found = quality(np.array([1.0, 2.0, 9.0]), np.array([1.0, 4.0, 10.0]))
    assert found.error == pytest.approx(0.1) and found.correlation == 1


def test_true_costs_fit_what_they_made():
    (one,) = classes_of([program("m", 30)])
    assert quality(one.predicted(vector_of(TRUE)), one.seconds).error < 0.03
