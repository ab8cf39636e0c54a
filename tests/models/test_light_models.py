"""The nine topologies that ship in the onnx wheel, as shipped and with seeded weights, against onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from fuseline.compilation import compile_program
from fuseline.pipeline import CompileOptions
from fuseline.report.records import decode
from fuseline.runtime import Session
from fuseline.verify.seeded_weights import with_seeded_weights

ort = pytest.importorskip("onnxruntime")

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = sorted(path.stem for path in LIGHT.glob("light_*.onnx"))
FAST = {"light_squeezenet"}


def _feeds(model: onnx.ModelProto, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    constants = {tensor.name for tensor in model.graph.initializer}
    shapes = {
        i.name: [d.dim_value for d in i.type.tensor_type.shape.dim]
        for i in model.graph.input
        if i.name not in constants
    }
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def _check(model: onnx.ModelProto, *, must_depend: bool) -> None:
    session = Session(compile_program(model, CompileOptions(threads=2)))
    options = ort.SessionOptions()
    options.log_severity_level = 3
    reference = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    answers = [reference.run(None, _feeds(model, seed)) for seed in (0, 1)]
    if must_depend:
        assert any(not np.array_equal(a, b) for a, b in zip(*answers, strict=True))
    for seed, expected in enumerate(answers):
        for ours, theirs in zip(session.run(_feeds(model, seed)).values(), expected, strict=True):
            assert np.abs(ours - theirs).max() <= 1e-4 * max(float(np.abs(theirs).max()), 1e-30)
    record = decode(session.records)
    assert not record.host_ops and record.statistics["standalone_transposes"] == 0


def _cases() -> list[object]:
    return [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in NAMES]


@pytest.mark.parametrize("name", _cases())
def test_a_topology_with_seeded_weights(name: str):
    _check(with_seeded_weights(onnx.load(str(LIGHT / f"{name}.onnx"))), must_depend=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_topology_as_shipped(name: str):
    _check(onnx.load(str(LIGHT / f"{name}.onnx")), must_depend=False)


def test_all_nine_are_there():
    assert len(NAMES) == 9
