"""Operators of nothing: what onnxruntime answers for a dimension of size 0 is answered alike, and what it refuses is
refused with a code or answered.

Nothing else may leave: no traceback, no element that nobody computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.conformance.empty_cases import EmptyCase, accepted, empty_cases

SHARES = 16
SAMPLED = 60
"""The default run takes every sixtieth; `-m slow` takes all."""

DIFFERS: dict[str, str] = {
    "test_matmulinteger ((0, 1), (1, 0))": "a product of no steps is 0; onnxruntime leaves its result unwritten",
    "test_qlinearmatmul_2D_* ((0, 1), (3, 0))": (
        "a product of no steps is the zero point; onnxruntime leaves its result unwritten"
    ),
    "test_qlinearmatmul_3D_* ((0, 2), (3, 1))": "as for two dimensions",
    "test_nllloss_NCd1 ((0, *), (1, *))": "the mean of nothing is NaN, as in NumPy and PyTorch; onnxruntime says 0",
    "test_sce_mean_3d ((0, 2), (1, 1))": "the mean of nothing is NaN, as in NumPy and PyTorch; onnxruntime says 0",
    "test_reduce_mean_default_axes_keepdims_example *": (
        "the mean of nothing is NaN, as in NumPy and the reference; onnxruntime says 0"
    ),
    "test_dft_rfft* ((0, 1), (0, 2))": (
        "half of the transform of nothing would have one place: refused; onnxruntime refuses it unless it is empty"
    ),
    "test_lstm_bidirectional ((0, 0),)": (
        "no steps leave the first states, here zeros; onnxruntime leaves its result unwritten"
    ),
    "test_scan_sum ((1, 1),)": "no steps leave the first state; onnxruntime leaves its result unwritten",
    "test_loop11 ((2, 0),)": (
        "the body declares a state of one element and is given none: what is declared is planned "
        "with; onnxruntime does not ask"
    ),
    "test_squeeze ((1, 0),)": (
        "axes that are given, and none, take no dimension away, as in the reference; "
        "onnxruntime takes them for left out"
    ),
    **{
        f"test_nonmaxsuppression_* ({places})": "onnxruntime reads a number where there is none: whatever lies there"
        for places in ("(2, 0),", "(3, 0),", "(4, 0),", "(0, 0), (1, 0), (1, 1), (2, 0), (3, 0), (4, 0)")
    },
    "test_gathernd_example_int32_batch_dim1 ((1, 0),)": (
        "batches of two and of none are refused; onnxruntime compares them where it reads an element"
    ),
}
"""Cases (patterns of their labels) that we refuse with a code, or answer otherwise than onnxruntime: why."""


def _differs(case: EmptyCase) -> bool:
    return any(fnmatchcase(case.label, pattern) for pattern in DIFFERS)


def _run(cases: Sequence[EmptyCase], target: str) -> None:
    problems = [f"{case.label}: {problem}" for case in cases if (problem := _problem(case, target)) is not None]
    assert not problems, "\n".join(problems)


def _problem(case: EmptyCase, target: str) -> str | None:
    """What is wrong with our answer, None if nothing is."""
    wanted = None if _differs(case) else accepted(case)
    try:
        found = list(fuseline.compile(case.model, threads=1, target=target).run(case.feeds).values())
    except FuselineError as error:
        return None if wanted is None and error.code != "E0901" else str(error)
    return None if wanted is None else _difference(wanted, found)


def _difference(wanted: Sequence[Any], found: Sequence[Any]) -> str | None:
    for expected, value in zip(wanted, found, strict=True):
        if not isinstance(expected, np.ndarray):
            continue
        small = (
            value.dtype.kind == "V" and expected.dtype == np.uint8
        )  # floats of a byte, as onnxruntime hands them out
        if expected.shape != value.shape or not (small or expected.dtype == value.dtype):
            return f"{value.dtype}{value.shape} instead of {expected.dtype}{expected.shape}"
        if expected.dtype != object and not np.allclose(
            expected.astype(np.float64), value.astype(np.float64), 1e-3, 1e-5, equal_nan=True
        ):
            return f"{value} instead of {expected}"
    return None


def test_what_differs_is_among_them() -> None:
    """An entry that names no case would go unseen."""
    labels = [case.label for case in empty_cases()]
    assert not [pattern for pattern in DIFFERS if not any(fnmatchcase(label, pattern) for label in labels)]


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_a_sample(target: str) -> None:
    """Some of them."""
    _run(list(empty_cases())[:: SAMPLED * (1 if target == "interpreter" else 3)], target)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_all(target: str, share: int) -> None:
    """All of them."""
    _run(list(empty_cases())[share::SHARES], target)
