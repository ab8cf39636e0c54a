"""What a session says of its inputs, outputs and model, beside what onnxruntime says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.interop.inference_session import InferenceSession, ModelMetadata, NodeArg
from fuseline.interop.session_options import PROVIDER
from tests.graphs.onnx_text import onnx_model

ort = pytest.importorskip("onnxruntime")
TEXT = "(float[n, 2] x, double[3] d, uint16[2] u, bool[2] b, string[n] t) => ({}) {{ {} }}"


@pytest.mark.parametrize("name", ["x", "d", "u", "b", "t"])
def test_types_and_sizes_are_spelled_as_onnxruntime_does(name: str) -> None:
    text = TEXT.format("y", f"y = Identity({name})")
    data = onnx_model(text).SerializeToString()
    ours, theirs = InferenceSession(data, target="interpreter"), ort.InferenceSession(data, providers=[PROVIDER])
    for found, wanted in zip(ours.get_inputs(), theirs.get_inputs(), strict=True):
        assert isinstance(found, NodeArg)
        assert (found.name, found.type, found.shape) == (wanted.name, wanted.type, wanted.shape)
    assert ours.get_outputs()[0].type == theirs.get_outputs()[0].type


def test_a_model_that_says_nothing_of_itself() -> None:
    session = InferenceSession(
        onnx_model("(float[2] x) => (y) { y = Neg(x) }").SerializeToString(), target="interpreter"
    )
    found: Any = session.get_modelmeta()
    assert isinstance(found, ModelMetadata)
    assert (found.version, found.custom_metadata_map, found.graph_name) == (0, {}, "g")
    x = np.random.default_rng().standard_normal(2).astype(np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], -x)
