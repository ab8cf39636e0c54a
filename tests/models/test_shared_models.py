"""Whole networks against onnxruntime: compiled natively, right, and in few dispatches.

Every comparison first checks that two inputs give outputs that differ: equality of constants would prove nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
import pytest

from fuseline.compilation import compile_program
from fuseline.pipeline import CompileOptions
from fuseline.report.records import CompileRecord, decode
from fuseline.runtime import Session

from .skeletons import filled, inputs_of
from .symbolic_minilm import make_symbolic

ort = pytest.importorskip("onnxruntime")

TOLERANCE = 1e-4
"""Of the largest magnitude of the reference output."""


@dataclass(frozen=True)
class Want:
    """At most this many dispatches: what IREE 3.13 forms with its default flags."""

    dispatches: int
    slow: bool = False


WANTS = {
    "mnist_cnn": Want(7),
    "mobilenet_v2": Want(55),
    "minilm": Want(101),
    "resnet50": Want(57, slow=True),
    "squeezenet1_1": Want(40),
    "edge_detection": Want(3),
    "vit_tiny": Want(162, slow=True),
    "bert_base": Want(197, slow=True),
    "mobilebert": Want(511, slow=True),
    "gpt2": Want(208, slow=True),
}


def _cases() -> list[object]:
    return [pytest.param(name, marks=pytest.mark.slow if want.slow else ()) for name, want in WANTS.items()]


def _largest_difference(ours: list[np.ndarray], reference: list[np.ndarray]) -> float:
    return max(
        float(np.abs(a.astype(np.float64) - b).max() / max(float(np.abs(b).max()), 1e-30))
        for a, b in zip(ours, reference, strict=True)
    )


def _reference(path: object, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    return ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feeds)


@pytest.mark.parametrize("name", _cases())
def test_a_model_is_native_right_and_in_few_dispatches(name: str):
    path = filled(name)
    session = Session(compile_program(path, CompileOptions(threads=2)))
    feeds, others = inputs_of(path), inputs_of(path, seed=1)
    expected, different = _reference(str(path), feeds), _reference(str(path), others)
    assert any(not np.array_equal(a, b) for a, b in zip(expected, different, strict=True))
    assert _largest_difference(list(session.run(feeds).values()), expected) <= TOLERANCE
    assert _largest_difference(list(session.run(others).values()), different) <= TOLERANCE
    record = decode(session.records)
    assert record.statistics["host_ops"] == 0 and not record.host_ops
    assert len(record.dispatches) <= WANTS[name].dispatches
    _check_records(record)


def _check_records(record: CompileRecord) -> None:
    """Nothing is lost: every source node is in a dispatch or was eliminated by a named pass; every edge has a
    verdict."""
    placed = {node for dispatch in record.dispatches for member in dispatch.members for node in member.nodes}
    assert set(record.source_nodes) <= placed | set(record.eliminated)
    assert all(decision.code and (decision.verdict != "missed" or decision.detail) for decision in record.decisions)
    assert record.statistics["fills"] == record.statistics["standalone_transposes"] == 0


@pytest.mark.slow
def test_one_artifact_runs_at_several_batches_and_lengths():
    static = onnx.load(str(filled("minilm")))
    model = make_symbolic(static)
    original = inputs_of(filled("minilm"))
    assert (
        _largest_difference(
            _reference(model.SerializeToString(), original), _reference(static.SerializeToString(), original)
        )
        < 1e-5
    )
    options = CompileOptions(threads=2, shapes={"batch": (1, 8), "sequence": (1, 512)})
    session = Session(compile_program(model, options))
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(5)
    for batch, length in ((1, 128), (2, 50), (3, 7), (8, 1)):
        feeds = {
            "input_ids": rng.integers(0, 30522, (batch, length)),
            "attention_mask": np.ones((batch, length), np.int64),
            "token_type_ids": rng.integers(0, 2, (batch, length)),
        }
        assert _largest_difference(list(session.run(feeds).values()), reference.run(None, feeds)) <= TOLERANCE
    assert not decode(session.records).host_ops
