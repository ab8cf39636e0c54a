"""Programs that are the same to the byte, and such that are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.tuning.same_program import same_program
from tests.draws import RNG
from tests.unit.tuning.realisations import OTHER, TEXT, written


@pytest.fixture
def weights() -> np.ndarray:
    return RNG.standard_normal((8, 16)).astype("f4")


def test_the_same_model_gives_the_same_program(tmp_path: Path, weights: np.ndarray):
    path = written(tmp_path, w=weights)
    first, second = (fuseline.compile(path, threads=1, cache=False).session.artifact for _ in range(2))
    assert first is not second and same_program(first, second)


def test_other_code_steps_and_constants_are_another(tmp_path: Path, weights: np.ndarray):
    path = written(tmp_path, w=weights)
    first = fuseline.compile(path, threads=1).session.artifact
    code = fuseline.compile(written(tmp_path, OTHER, "other.onnx", w=weights), threads=1).session.artifact
    apart = fuseline.compile(path, threads=1, fusion="none").session.artifact
    heavier = fuseline.compile(written(tmp_path, TEXT, "more.onnx", w=2 * weights), threads=1).session.artifact
    assert not any(same_program(first, other) for other in (code, apart, heavier))
    assert same_program(first.with_fallback(apart), first.with_fallback(apart))
    assert not same_program(first, first.with_fallback(apart))
    assert not same_program(first.with_fallback(first), first.with_fallback(apart))


def test_programs_without_code_are_never_taken_for_the_same(tmp_path: Path, weights: np.ndarray):
    program = fuseline.compile(written(tmp_path, w=weights), target="null").session.artifact
    assert not same_program(program, program)
