"""What is told of an artifact with a second program: times of the one that runs, no weights of either."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.errors import UnequalSizesError
from fuseline.runtime import read_artifact
from fuseline.verify.dispatch_times import dispatch_seconds, program_run
from fuseline.verify.stripped_weights import write_stripped_artifact
from tests.graphs.onnx_text import onnx_model

SECRET = np.random.default_rng().standard_normal((8, 96), np.float32)


@pytest.fixture(scope="module")
def program() -> fuseline.CompiledModel:
    """A product of as many rows as an even number of rows and the rows themselves broadcast to."""
    text = (
        "(float[h, 8] x) => (z) { half = Slice(x, zero, end, zero, two) even = Concat<axis = 0>(half, half) "
        "sum = Add(x, even) z = MatMul(sum, w) }"
    )
    numbers = {name: np.array([value]) for name, value in (("zero", 0), ("end", 99), ("two", 2))}
    return fuseline.compile(onnx_model(text, numbers, w=SECRET), threads=1)


@pytest.mark.parametrize(("rows", "falls_back"), [(4, False), (1, True)])
def test_the_program_that_runs_is_timed(program: fuseline.CompiledModel, rows: int, falls_back: bool):
    artifact: Any = program.session.artifact
    feeds = {"x": np.ones((rows, 8), np.float32)}
    found = program_run(artifact, feeds, 1)
    assert (found is artifact.fallback) == falls_back and found.fallback is None
    times = dispatch_seconds(found, feeds, 1)
    assert len(times) == len(found.program.steps) and all(seconds >= 0 for _, seconds in times)


def test_sizes_that_no_program_takes_are_refused(program: fuseline.CompiledModel):
    feeds = {"x": np.ones((3, 8), np.float32)}
    with pytest.raises(UnequalSizesError):
        dispatch_seconds(program_run(program.session.artifact, feeds, 1), feeds, 1)


def test_a_stripped_artifact_has_no_weights_and_the_same_programs(program: fuseline.CompiledModel, tmp_path: Path):
    program.save(tmp_path / "m.fuse")
    write_stripped_artifact(tmp_path / "m.fuse", tmp_path / "stripped.fuse")
    theirs, ours = read_artifact(tmp_path / "stripped.fuse", verify=True), program.session.artifact
    assert theirs.program == ours.program and theirs.fallback is not None
    assert theirs.fallback.program == ours.fallback.program
    pieces = [row.tobytes() for row in SECRET.reshape(-1, 16)]
    assert any(piece in (tmp_path / "m.fuse").read_bytes() for piece in pieces)
    assert not any(piece in (tmp_path / "stripped.fuse").read_bytes() for piece in pieces)
