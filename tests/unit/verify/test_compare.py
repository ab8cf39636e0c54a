"""Comparison is relative to the largest magnitude and refuses to prove nothing."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from fuseline.errors import FuselineError
from fuseline.verify.compare import TOLERANCE, compare, dependent_outputs, require_agreement


def _one(ours: np.ndarray, reference: np.ndarray):
    return compare({"y": ours}, {"y": reference}, {"y"})[0]


def test_the_error_is_relative_to_the_largest_magnitude():
    reference = np.array([100.0, 0.001], np.float32)
    assert _one(reference + np.float32(0.005), reference).error == pytest.approx(5e-5, rel=0.01)


def test_equal_outputs_on_different_inputs_are_refused():
    with pytest.raises(FuselineError) as caught:
        dependent_outputs({"y": np.ones(3)}, {"y": np.ones(3)})
    assert caught.value.code == "E0602"


def test_one_dependent_output_is_enough_and_named():
    first, second = {"a": np.ones(3), "b": np.zeros(2)}, {"a": np.ones(3), "b": np.ones(2)}
    assert dependent_outputs(first, second) == {"b"}


@pytest.mark.parametrize(
    ("ours", "problem"),
    [
        (np.zeros((2, 1), np.float32), "shape (2, 1), expected (2,)"),
        (np.zeros(2, np.float64), "dtype float64, expected float32"),
        (np.array([np.nan, 1], np.float32), "NaN where the reference has a number"),
    ],
)
def test_forms_must_agree(ours: np.ndarray, problem: str):
    found = _one(ours, np.ones(2, np.float32))
    assert found.problem == problem
    assert not found.passes(TOLERANCE)


def test_nan_and_infinity_must_stand_in_the_same_places():
    reference = np.array([np.nan, np.inf, 1], np.float32)
    assert _one(reference.copy(), reference).passes(0)
    assert _one(np.array([np.nan, -np.inf, 1], np.float32), reference).problem.startswith("NaN or infinity")
    assert _one(np.array([0, np.inf, 1], np.float32), reference).problem.startswith("NaN or infinity")


def test_integers_are_counted():
    assert _one(np.array([1, 2, 3, 5]), np.array([1, 2, 3, 4])).error == 0.25


def test_halves_of_another_package_are_compared_by_distance():
    reference = np.array([100.0, 1.0], ml_dtypes.bfloat16)
    assert _one(np.array([100.0, 1.25], ml_dtypes.bfloat16), reference).error == pytest.approx(0.0025)
    assert _one(np.array([3, 2], ml_dtypes.int4), np.array([3, 2], ml_dtypes.int4)).passes(0)
    assert not _one(np.array([3, 1], ml_dtypes.int4), np.array([3, 2], ml_dtypes.int4)).passes(0)


def test_a_missing_output_fails():
    assert compare({}, {"y": np.ones(1)}, set())[0].problem == "output is missing"


def test_disagreement_names_the_worst_output():
    reference = {"a": np.ones(2), "b": np.ones(2)}
    found = compare({"a": np.ones(2) * 1.01, "b": np.ones(2) * 1.5}, reference, set(reference))
    with pytest.raises(FuselineError) as caught:
        require_agreement(found, TOLERANCE, "onnxruntime")
    assert (caught.value.code, caught.value.node) == ("E0601", "b")
    require_agreement(found, 1.0, "onnxruntime")
