"""Seeded weights make a placeholder topology depend on its input, with magnitudes that stay ordinary."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from fuseline.verify.seeded_weights import with_seeded_weights

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


@pytest.fixture(scope="module")
def squeezenet() -> onnx.ModelProto:
    return onnx.load(LIGHT / "light_squeezenet.onnx")


def _tensors(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def test_every_placeholder_is_replaced_and_the_model_stays_valid(squeezenet: onnx.ModelProto):
    filled = with_seeded_weights(squeezenet)
    onnx.checker.check_model(filled)
    assert not [node for node in filled.graph.node if node.op_type == "ConstantOfShape"]
    initialized = {tensor.name for tensor in filled.graph.initializer}
    assert [value.name for value in filled.graph.input if value.name not in initialized] == ["data_0"]


def test_the_same_seed_gives_the_same_weights(squeezenet: onnx.ModelProto):
    first, again, other = (_tensors(with_seeded_weights(squeezenet, seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert any(not np.array_equal(first[name], other[name]) for name in first)


def test_filters_are_scaled_by_fan_in(squeezenet: onnx.ModelProto):
    weights = _tensors(with_seeded_weights(squeezenet))["fire2/expand3x3_w_0"]
    assert weights.std() == pytest.approx(np.sqrt(2 / weights[0].size), rel=0.05)


def test_the_original_is_not_touched(squeezenet: onnx.ModelProto):
    before = squeezenet.SerializeToString()
    with_seeded_weights(squeezenet)
    assert squeezenet.SerializeToString() == before


def test_outputs_depend_on_inputs(squeezenet: onnx.ModelProto):
    ort = pytest.importorskip("onnxruntime")
    session = ort.InferenceSession(
        with_seeded_weights(squeezenet).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    rng = np.random.default_rng(0)
    first, second = (
        session.run(None, {"data_0": rng.standard_normal((1, 3, 224, 224), np.float32)})[0] for _ in range(2)
    )
    assert np.abs(first - second).max() > 1e-3 * np.abs(first).max()
    assert np.isfinite(first).all()
