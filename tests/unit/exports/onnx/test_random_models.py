"""Random models of every operator, written with a function for each dispatch."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from fuseline import FuselineError, fuse
from tests.draws import generator
from tests.fused import compare, outputs
from tests.fuzz.generate import make_case

_FEW, _MANY = 6, 300


def _seeds(name: str, count: int) -> list[int]:
    return [int(seed) for seed in generator(name).integers(0, 1 << 31, count)]


def _check(seed: int, nodes: int, folder: Path) -> None:
    case = make_case(seed, nodes)
    path = folder / "fused.onnx"
    try:
        fused = fuse(case.model)
    except FuselineError as refused:
        assert refused.code != "E0901"
        return
    fused.save(path)
    if _is_valid(case.model):
        onnx.checker.check_model(str(path), full_check=True)
    again = fuse(path)
    again.save(folder / "again.onnx")
    assert again.summary.plan == fused.summary.plan and again.summary.graph == fused.summary.graph
    assert path.read_bytes() == (folder / "again.onnx").read_bytes()
    try:
        expected = outputs(case.model.SerializeToString(), case.feeds[0])
    except Exception:  # noqa: BLE001 - what onnxruntime cannot run is not compared with it
        return
    assert compare(expected, outputs(str(path), case.feeds[0])) <= 1


def _is_valid(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


@pytest.mark.parametrize("seed", _seeds(__name__, _FEW))
def test_a_random_model(seed: int, tmp_path: Path):
    _check(seed, 12, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", _seeds(f"{__name__} slow", _MANY))
def test_a_larger_random_model(seed: int, tmp_path: Path):
    _check(seed, 40, tmp_path)
