"""The file of a run's time line names dispatches and source nodes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import fuseline
from fuseline.runtime import Session
from fuseline.verify.run_trace import FailedRunError, run_trace
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

TEXT = """(float[m, 64] x) => (y) {
    [first] a = MatMul(x, w)  [first2] b = Tanh(a)  [found] c = NonZero(b)  d = Cast<to = 1>(c)  [last] y = Mul(d, d)
}"""


def _floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("runs", [1, 3])
def test_bars_are_dispatches_with_their_nodes(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuseline.verify.run_trace.OVERHEAD", 1e9)
    program = fuseline.compile(onnx_model(TEXT, w=_floats(64, 32)), threads=1, cache=False)
    assert isinstance(program.session, Session)
    found = json.loads(run_trace(program.session, program.record, {"x": _floats(7, 64)}, runs))
    bars = [event for event in found["traceEvents"] if event["ph"] == "X"]
    labels = [bar["name"] for bar in bars if bar["cat"] == "command"]
    assert labels == [dispatch.label for dispatch in program.record.dispatches] * runs
    nodes = {node for bar in bars for node in bar["args"].get("nodes", ())}
    assert nodes >= {"first", "first2", "last"}
    assert [bar["cat"] for bar in bars].count("run") == [bar["cat"] for bar in bars].count("host") == runs


def test_a_failed_run_leaves_its_line() -> None:
    program = fuseline.compile(onnx_model(TEXT, w=_floats(64, 32)), threads=1, cache=False)
    assert isinstance(program.session, Session)
    with pytest.raises(FailedRunError) as caught:
        run_trace(program.session, program.record, {"x": _floats(7, 63)})
    events = json.loads(caught.value.trace)["traceEvents"]
    assert [event["name"] for event in events if event["ph"] == "i"] == ["error E0203"]


def test_the_title_says_that_runs_were_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuseline.verify.run_trace.OVERHEAD", 1e-9)
    program = fuseline.compile(onnx_model(TEXT, w=_floats(64, 32)), threads=1, cache=False)
    assert isinstance(program.session, Session)
    found = json.loads(run_trace(program.session, program.record, {"x": _floats(7, 64)}, 5))["traceEvents"]
    titles = [event["args"]["name"] for event in found if event["name"] == "process_name"]
    assert "one run in" in titles[0] and [event.get("cat") for event in found].count("run") == 1
