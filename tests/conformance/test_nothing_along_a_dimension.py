"""Operators of nothing: what onnxruntime answers for a dimension of size 0 is answered alike, and what it refuses is refused with a code or answered.

Nothing else may leave: no traceback, no element that nobody computed.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    "test_gemm": "a product of no steps is 0, to which beta * C is added; onnxruntime forgets beta",
    "test_matmulinteger": "a product of no steps is 0; onnxruntime leaves its result unwritten",
    "test_qlinearmatmul": "a product of no steps is 0, which the zero point stands for; onnxruntime leaves its result unwritten",
    "test_nllloss": "the mean of nothing is NaN, as in NumPy and PyTorch; onnxruntime says 0",
    "test_sce": "the mean of nothing is NaN, as in NumPy and PyTorch; onnxruntime says 0",
    "test_dft_rfft": "half of the transform of nothing is refused",
    "test_dft_inverse ((0, 1),)": "still to do: the inverse transform of nothing along its axis is refused",
    "test_lstm_bidirectional ((0, 0),)": "no steps leave the first states, here zeros; onnxruntime leaves its result unwritten",
    "test_loop11 ((2, 0),)": "still to do: the host's answer (0,) is refused where (1,) was planned",
    "test_ai_onnx_ml_tree_ensemble": "no rows are refused by onnx.reference",
}
"""Cases (by the beginning of their label) that we refuse with a code, or answer otherwise than onnxruntime: why."""


def _run(cases: Sequence[EmptyCase], target: str) -> None:
    problems = [f"{case.label}: {problem}" for case in cases if (problem := _problem(case, target)) is not None]
    assert not problems, "\n".join(problems)


def _problem(case: EmptyCase, target: str) -> str | None:
    """What is wrong with our answer, None if nothing is."""
    if any(case.label.startswith(name) for name in DIFFERS):
        return None
    wanted = accepted(case)
    try:
        found = list(fuseline.compile(case.model, threads=1, target=target).run(case.feeds).values())
    except FuselineError as error:
        return None if wanted is None and error.code != "E0901" else str(error)
    return None if wanted is None else _difference(wanted, found)


def _difference(wanted: Sequence[Any], found: Sequence[Any]) -> str | None:
    for expected, value in zip(wanted, found, strict=True):
        if not isinstance(expected, np.ndarray):
            continue
        small = value.dtype.kind == "V" and expected.dtype == np.uint8  # floats of a byte, as onnxruntime hands them out
        if expected.shape != value.shape or not (small or expected.dtype == value.dtype):
            return f"{value.dtype}{value.shape} instead of {expected.dtype}{expected.shape}"
        if expected.dtype != object and not np.allclose(expected.astype(np.float64), value.astype(np.float64), 1e-3, 1e-5, equal_nan=True):
            return f"{value} instead of {expected}"
    return None


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
