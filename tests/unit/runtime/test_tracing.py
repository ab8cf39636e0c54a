"""A traced run answers what a run does, and its events are where they belong."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.runtime import Session
from fuseline.runtime.tracing import Event, RunTracer
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

PRODUCTS = """(float[n, 96] x) => (float[n, 96] y) {
    a = MatMul(x, w)  b = Softmax<axis = 0>(a)  c = MatMul(b, w)  y = Tanh(c)
}"""
FOUND = """(float[40, 8] x) => (y) {
    a = Exp(x)  at = NonZero(a)  b = Cast<to = 1>(at)  y = Mul(b, b)
}"""


def _floats(*shape: int) -> Any:
    return RNG.standard_normal(shape, dtype=np.float32)


def _session(model: onnx.ModelProto, threads: int, **options: Any) -> Session:
    session = fuseline.compile(model, threads=threads, cache=False, **options).session
    assert isinstance(session, Session)
    return session


def _traced(session: Session, feeds: dict[str, Any]) -> tuple[dict[str, Any], list[Event]]:
    with RunTracer(session) as tracer:
        outputs = tracer.run(feeds)
    return outputs, tracer.events


def _recurrent() -> onnx.ModelProto:
    weights = {"w": _floats(1, 4 * 24, 12), "r": _floats(1, 4 * 24, 24)}
    return onnx_model("(float[9, 2, 12] x) => (y) { y = LSTM<hidden_size = 24>(x, w, r) }", weights)


CASES = {
    "symbolic": (lambda: onnx_model(PRODUCTS, w=_floats(96, 96)), lambda: {"x": _floats(37, 96)}),
    "loop": (_recurrent, lambda: {"x": _floats(9, 2, 12)}),
    "stages": (lambda: onnx_model(FOUND), lambda: {"x": _floats(40, 8)}),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_outputs_are_those_of_a_run_and_events_are_nested(case: str, threads: int) -> None:
    model, feeds = CASES[case][0](), CASES[case][1]()
    session = _session(model, threads, fusion="none")
    outputs, events = _traced(session, feeds)
    for name, array in session.run(feeds).items():
        assert np.array_equal(array, outputs[name])
    (run,) = [event for event in events if event.kind == "run"]
    natives = [event for event in events if event.kind == "native"]
    assert all(run.begin <= event.begin <= event.end <= run.end + 1000 for event in events)
    for event in events:
        if event.kind in ("command", "wait") and event.thread == 0:
            assert any(one.begin - 1000 <= event.begin and event.end <= one.end + 1000 for one in natives)


@pytest.mark.parametrize("case", CASES)
def test_each_command_is_there_once_per_iteration(case: str) -> None:
    session = _session(CASES[case][0](), 1, fusion="none")
    _, events = _traced(session, CASES[case][1]())
    commands = [(event.number, event.trip) for event in events if event.kind == "command"]
    assert len(set(commands)) == len(commands) > 1
    assert {number for number, _ in commands} == set(range(1 + max(number for number, _ in commands)))
    assert not [event for event in events if event.kind == "wait"]
    if case == "loop":
        assert max(trip for _, trip in commands) == 8
    hosts = [event.label for event in events if event.kind == "host"]
    assert len(hosts) == (case == "stages")


def test_events_of_a_thread_lie_behind_each_other() -> None:
    model, feeds = onnx_model(PRODUCTS, w=_floats(96, 96)), {"x": _floats(200, 96)}
    _, events = _traced(_session(model, 2, fusion="none"), feeds)
    for thread in (0, 1):
        bars = [event for event in events if event.kind in ("command", "wait") and event.thread == thread]
        assert all(before.end <= after.begin for before, after in pairwise(bars))
        assert {event.kind for event in bars} == {"command", "wait"}


def test_what_a_failed_run_had_done_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    session = _session(onnx_model(FOUND), 1)
    with RunTracer(session) as tracer:
        monkeypatch.setattr("fuseline.runtime.execution.call_host", _fail)
        with pytest.raises(FuselineError, match="on purpose"):
            tracer.run({"x": _floats(40, 8)})
    kinds = [event.kind for event in tracer.events]
    assert kinds.count("run") == kinds.count("host") == 1
    assert "command" in kinds
    numbers = {event.number for event in tracer.events if event.kind == "command"}
    assert numbers == {0}  # the commands behind the call have not run


def _fail(*_: Any) -> Any:
    raise FuselineError("E0106", "failed on purpose")


def test_runs_before_forget_are_dropped() -> None:
    session, feeds = _session(CASES["loop"][0](), 1), CASES["loop"][1]()
    with RunTracer(session) as tracer:
        tracer.run(feeds)
        tracer.forget()
        tracer.run(feeds)
    assert [event.kind for event in tracer.events].count("run") == 1


def test_of_short_runs_some_are_recorded_and_all_are_answered() -> None:
    model, feeds = onnx_model(PRODUCTS, w=_floats(96, 96)), {"x": _floats(3, 96)}
    session = _session(model, 1)
    expected = session.run(feeds)["y"]
    with RunTracer(session, overhead=1e-6) as tracer:  # so little that more than one run has to be left out
        for _ in range(40):
            assert np.array_equal(tracer.run(feeds)["y"], expected)
    assert tracer.every > 40
    assert [event.kind for event in tracer.events].count("run") == 1
    with RunTracer(session, overhead=1e9) as tracer:
        for _ in range(5):
            tracer.run(feeds)
    assert tracer.every == 1 and [event.kind for event in tracer.events].count("run") == 5


def test_a_program_without_host_operators_is_one_stay_from_its_first_command_to_its_last() -> None:
    session = _session(onnx_model(PRODUCTS, w=_floats(96, 96)), 2, fusion="none")
    _, events = _traced(session, {"x": _floats(200, 96)})
    (native,) = [event for event in events if event.kind == "native"]
    mine = [event for event in events if event.kind == "command" and event.thread == 0]
    assert native.begin == mine[0].begin and native.end == mine[-1].end
