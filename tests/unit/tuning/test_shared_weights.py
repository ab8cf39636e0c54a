"""Programs that are compared hold equal weights in the same memory, and compute what they did."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.compiled_model import CompiledModel
from fuseline.runtime import Artifact, Session
from fuseline.runtime.memory import Bytes
from fuseline.tuning.shared_weights import on_level_ground
from tests.draws import RNG
from tests.unit.tuning.realisations import written

TEXT = "(float[4, 8] x) => (y, z) { y = MatMul(x, w) z = MatMul(x, v) }"


@pytest.fixture
def weights() -> dict[str, np.ndarray]:
    return {name: RNG.standard_normal((8, 16)).astype("f4") for name in "wv"}


def _constants(program: CompiledModel) -> list[Bytes]:
    artifact = program.session.artifact
    assert isinstance(artifact, Artifact)
    return list(artifact.constants)


def _shared(first: Bytes, others: list[Bytes]) -> bool:
    return any(np.shares_memory(first, other) for other in others)


def test_equal_weights_are_the_same_memory_and_others_are_not(tmp_path: Path, weights: dict[str, np.ndarray]):
    path = written(tmp_path, TEXT, w=weights["w"], v=weights["v"])
    half = written(tmp_path, TEXT, "half.onnx", w=weights["w"], v=weights["v"] + 1)
    incumbent = on_level_ground(fuseline.compile(path, threads=1, fusion="none"))
    plain = fuseline.compile(half, threads=1, fusion="none")
    trial = on_level_ground(plain, incumbent)
    shared = [_shared(constant, _constants(incumbent)) for constant in _constants(trial)]
    assert sorted(shared) == [False, True]
    feeds = {"x": RNG.standard_normal((4, 8)).astype("f4")}
    for name, array in plain.run(feeds).items():
        np.testing.assert_array_equal(trial.run(feeds)[name], array)
    assert trial.record == plain.record and trial.threads == plain.threads


def test_nothing_is_left_where_it_was(tmp_path: Path, weights: dict[str, np.ndarray]):
    program = fuseline.compile(written(tmp_path, TEXT, w=weights["w"], v=weights["v"]), threads=1)
    moved = on_level_ground(program)
    assert not any(_shared(constant, _constants(program)) for constant in _constants(moved))
    assert all(constant.ctypes.data % 64 == 0 for constant in _constants(moved))


def test_weights_of_a_second_program_move_too(tmp_path: Path, weights: dict[str, np.ndarray]):
    program = fuseline.compile(written(tmp_path, TEXT, w=weights["w"], v=weights["v"]), threads=1)
    artifact = program.session.artifact
    assert isinstance(artifact, Artifact)
    both = CompiledModel(Session(artifact.with_fallback(artifact), threads=1))
    moved = on_level_ground(both).session.artifact
    assert isinstance(moved, Artifact) and moved.fallback is not None
    assert all(a is b for a, b in zip(moved.constants, moved.fallback.constants, strict=True))


def test_a_program_without_weights_in_memory_stays(tmp_path: Path, weights: dict[str, np.ndarray]):
    program = fuseline.compile(written(tmp_path, TEXT, w=weights["w"], v=weights["v"]), target="interpreter")
    assert on_level_ground(program) is program
