"""The file of a compile's time line has phases, passes and kernels."""

from __future__ import annotations

import json

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.pipeline import PHASES
from fuseline.timeline import recording
from fuseline.verify.compile_trace import compile_trace
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model


def test_every_phase_and_pass_is_a_bar_and_kernels_lie_inside() -> None:
    weights = {name: RNG.standard_normal((32, 32), dtype=np.float32) for name in "vw"}
    model = onnx_model(
        "(float[5, 32] x) => (y) { a = MatMul(x, v)  b = Softmax<axis = 0>(a)  y = MatMul(b, w) }", weights
    )
    with recording() as timeline:
        program = fuseline.compile(model, cache=False)
    bars = [event for event in json.loads(compile_trace("m", timeline.spans))["traceEvents"] if event["ph"] == "X"]
    names = {category: [bar["name"] for bar in bars if bar["cat"] == category] for category in ("phase", "pass")}
    assert [name for name in names["phase"] if name != "read"] == list(PHASES)
    assert set(names["pass"]) == {name for phase in PHASES.values() for name in phase}
    kernels = [bar["name"] for bar in bars if bar["cat"] == "kernel"]
    assert set(kernels) >= {dispatch.executable for dispatch in program.record.dispatches}


def test_what_ended_a_compile_is_said() -> None:
    model = onnx_model("(float[5, 32] x) => (y) { y = NoSuchOperator(x) }")
    with recording() as timeline, pytest.raises(FuselineError):
        fuseline.compile(model, cache=False)
    bars = [event for event in json.loads(compile_trace("m", timeline.spans))["traceEvents"] if event["ph"] == "X"]
    assert any("NoSuchOperator" in bar["args"].get("error", "") for bar in bars)
