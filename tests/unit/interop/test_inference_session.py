"""A script written for onnxruntime runs unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from tests.small_models import attention, mlp

ort = pytest.importorskip("onnxruntime")

X = np.random.default_rng(5).standard_normal((4, 16), np.float32)


def _described(session: Any) -> list[tuple[str, str, list[Any]]]:
    return [(item.name, item.type, item.shape) for item in (*session.get_inputs(), *session.get_outputs())]


@pytest.mark.parametrize("model", [mlp(), attention("batch", "length")], ids=["fixed", "symbolic"])
def test_inputs_and_outputs_are_described_as_onnxruntime_does(model: Any):
    data = model.SerializeToString()
    assert _described(fuseline.InferenceSession(data)) == _described(ort.InferenceSession(data))


def test_run_by_path_bytes_and_artifact(tmp_path: Path):
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    by_path = fuseline.InferenceSession(tmp_path / "m.onnx", options, providers=["CPUExecutionProvider"])
    fuseline.compile(tmp_path / "m.onnx", threads=1).save(tmp_path / "m.fuse")
    sessions = [by_path, fuseline.InferenceSession(mlp().SerializeToString()), fuseline.InferenceSession(str(tmp_path / "m.fuse"))]
    expected = ort.InferenceSession(str(tmp_path / "m.onnx")).run(None, {"x": X})[0]
    for session in sessions:
        (actual,) = session.run(None, {"x": X})
        assert np.abs(actual - expected).max() <= 1e-4 * np.abs(expected).max()
    assert by_path.get_providers() == ["CPUExecutionProvider"]


def test_outputs_can_be_chosen():
    session = fuseline.InferenceSession(mlp().SerializeToString())
    name = session.get_outputs()[0].name
    assert len(session.run([name, name], {"x": X})) == 2
