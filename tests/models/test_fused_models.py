"""Whole networks with a function for each dispatch: valid, equal in onnxruntime, and the same when they are read again
(`tools/fused_models.py` prints the same as a table)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from fuseline.verify.seeded_weights import with_seeded_weights
from tests.fused import Checked, checked

from .skeletons import ROOT, filled, inputs_of

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = sorted(path.stem for path in LIGHT.glob("light_*.onnx"))
PUBLIC = sorted(path.stem for path in (ROOT / "skeletons").glob("*.onnx"))
FAST = {"mnist_cnn", "edge_detection"}


def _cases() -> list[Any]:
    return [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in PUBLIC]


def _holds(found: Checked) -> None:
    assert found.equal and found.same_plan and found.same_export


@pytest.mark.parametrize("name", _cases())
def test_a_public_model(name: str, tmp_path: Path):
    path = filled(name)
    _holds(checked(path, inputs_of(path), tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seeded", [False, True], ids=["shipped", "seeded"])
def test_a_light_model(name: str, seeded: bool, tmp_path: Path):
    path = LIGHT / f"{name}.onnx"
    model = onnx.load(str(path))
    _holds(checked(with_seeded_weights(model) if seeded else path, _light_feeds(model), tmp_path))


def _light_feeds(model: onnx.ModelProto) -> dict[str, Any]:
    rng = np.random.default_rng()
    constants = {tensor.name for tensor in model.graph.initializer}
    sizes = {info.name: [dim.dim_value for dim in info.type.tensor_type.shape.dim] for info in model.graph.input}
    return {
        name: rng.standard_normal(shape).astype(np.float32) for name, shape in sizes.items() if name not in constants
    }
