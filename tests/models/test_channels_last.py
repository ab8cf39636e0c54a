"""Networks in the style of a tf2onnx export form as few dispatches as the originals: transposes and reshapes fold away
(iree-amd-aie#515)."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from fuseline.compilation import compile_program
from fuseline.pipeline import CompileOptions
from fuseline.report.records import CompileRecord, decode
from fuseline.runtime import Session

from .channels_last import TO_LAST, to_tensorflow_style
from .skeletons import filled, inputs_of

ort = pytest.importorskip("onnxruntime")


def _compiled(model: object) -> tuple[Session, CompileRecord]:
    session = Session(compile_program(model, CompileOptions(threads=2)))
    return session, decode(session.records)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["deeplabv3_mnv2_fp32", "deeplabv3_mobilenet_v3_large"])
def test_a_channels_last_export_has_the_dispatches_of_the_original(name: str):
    path = filled(name)
    original, rewritten = onnx.load(str(path)), to_tensorflow_style(onnx.load(str(path)))
    _, record = _compiled(path)
    session, styled = _compiled(rewritten)
    border = len(original.graph.input) + len(original.graph.output)
    assert len(styled.dispatches) <= len(record.dispatches) + border
    assert styled.statistics["standalone_transposes"] <= border

    feeds = {key: value.transpose(TO_LAST) for key, value in inputs_of(path).items()}
    expected = ort.InferenceSession(rewritten.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    feeds = {key: np.ascontiguousarray(value) for key, value in feeds.items()}
    for ours, reference in zip(session.run(feeds).values(), expected, strict=True):
        assert np.abs(ours - reference).max() <= 1e-4 * np.abs(reference).max()
