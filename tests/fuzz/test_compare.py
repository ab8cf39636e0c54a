"""What noisy runs explain: a result among theirs, and near a pole any that is not finite."""

from __future__ import annotations

import numpy as np
import pytest

from tests.fuzz.compare import explained
from tests.fuzz.tensors import F32, Array


def _runs(*values: float) -> list[Array]:
    return [np.array([value], np.float32) for value in values]


@pytest.mark.parametrize(
    ("ours", "runs", "is_explained"),
    [
        (8.66, (8.6, 8.7, 8.65), True),
        (12.0, (8.6, 8.7, 8.65), False),
        (np.inf, (8.6, 8.7, np.nan), True),
        (np.nan, (8.6, np.inf, 8.7), True),
        (np.inf, (8.6, 8.7, 8.65), False),
        (np.nan, (8.6, 8.7, 8.65), False),
        (np.inf, (np.inf, np.inf, np.inf), True),
    ],
)
def test_one_element(ours: float, runs: tuple[float, ...], is_explained: bool) -> None:
    assert explained(np.array([ours], np.float32), _runs(*runs), F32) == is_explained
