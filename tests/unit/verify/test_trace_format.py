"""Time lines keep to the rules of the format (`tests/trace_rules.py`): of runs and compiles, on one thread and two,
with operators of the host, loops, branches, names that are markup, and of what failed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from fuseline.cli.main import main
from fuseline.report.time_line import Moment, TimeSpan, trace_json
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.trace_rules import trace_problems

DENSE = """(float[m, 64] x) => (y) {
    [a] a = MatMul(x, w)  [b] b = Softmax<axis = 1>(a)  [c] c = MatMul(b, w)
    [d] d = Softmax<axis = 0>(c)  [y] y = MatMul(d, w)
}"""
HOST = """(float[m, 64] x) => (y) {
    [first] a = MatMul(x, w)  [b] b = Tanh(a)  [found] c = NonZero(b)  d = Cast<to = 1>(c)  [last] y = Mul(d, d)
}"""
LOOP = """(float[4, 64] x, int64 n) => (y) {
    t = Constant<value = bool {1}>()
    y = Loop(n, t, x) <body = body (int64 i, bool go, float[4, 64] h) => (bool on, float[4, 64] k) {
        on = Identity(go)  p = MatMul(h, w)  k = Tanh(p)
    }>
}"""
BRANCH = """(float[4, 64] x, bool c) => (z) {
    y = If(c) <then_branch = one () => (float[4, 64] u) { u = MatMul(x, w) },
               else_branch = two () => (float[4, 64] v) { p = Tanh(x)  v = Mul(p, p) }>
    z = Softmax(y)
}"""
RESHAPED = "(float[m, 64] x, int64[2] s) => (y) { a = MatMul(x, w)  r = Reshape(a, s)  y = Tanh(r) }"
MODELS = {"dense": DENSE, "host": HOST, "loop": LOOP, "branch": BRANCH}


def _saved(text: str, folder: Path) -> Path:
    model = onnx_model(text, w=RNG.standard_normal((64, 64), dtype="float32"))
    model.graph.node[0].name = "</script>\u2028\"'\\ \x01"
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


def _checked(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    assert trace_problems(data) == []
    return json.loads(data)["traceEvents"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_runs(name: str, threads: int, tmp_path: Path) -> None:
    model, line = _saved(MODELS[name], tmp_path), tmp_path / "t.json"
    for runs in ("1", "5"):
        assert main(["run", str(model), "--trace", str(line), "--trace-runs", runs, "--threads", str(threads)]) == 0
        events = _checked(line)
        assert {event["tid"] for event in events if event.get("cat") == "run"} == {1}
        assert {event["tid"] for event in events} <= {1, *range(1, threads + 1)}


@pytest.mark.parametrize("threads", [1, 2])
def test_compiles(threads: int, tmp_path: Path) -> None:
    model, line = _saved(DENSE, tmp_path), tmp_path / "t.json"
    words = ["compile", str(model), "-o", str(tmp_path / "m.fuse"), "--trace", str(line), "--threads", str(threads)]
    assert main(words) == 0
    assert "kernel" in {event.get("cat") for event in _checked(line)}


def test_a_run_and_a_compile_that_fail(tmp_path: Path) -> None:
    model, line = (
        _saved("(float[m, 64] x, int64[2] s) => (y) { a = MatMul(x, w)  r = Reshape(a, s)  y = Tanh(r) }", tmp_path),
        tmp_path / "t.json",
    )
    feeds = ["--input", f"x=@{tmp_path / 'x.npy'}", "--input", f"s=@{tmp_path / 's.npy'}"]
    np.save(tmp_path / "x.npy", RNG.standard_normal((3, 64), dtype="float32"))
    np.save(tmp_path / "s.npy", RNG.integers(200, 300, 2))
    assert main(["run", str(model), *feeds, "--trace", str(line)]) == 1
    assert [event["name"][:5] for event in _checked(line) if event["ph"] == "i"] == ["error"]
    onnx.save(onnx_model("(float[5] x) => (y) { y = NoSuchOperator(x) }"), model)
    line.unlink()
    assert main(["compile", str(model), "-o", str(tmp_path / "m.fuse"), "--trace", str(line)]) == 1
    assert any("NoSuchOperator" in event["args"].get("error", "") for event in _checked(line))


SPANS = [TimeSpan("outer", "run", 0, 1_000, 9_001, {}), TimeSpan("inner", "command", 0, 1_000, 2_003, {"n": 1})]
LINE = trace_json("m", {0: "caller", 1: "worker 1"}, SPANS, [Moment("error E0106", 0, 9_001, {"why": "x"})])


def _event(called: str, /, **fields: Any) -> Callable[[dict[str, Any]], object]:
    def change(document: dict[str, Any]) -> None:
        event = next(one for one in document["traceEvents"] if one["name"] == called)
        event.update(fields)

    return change


def _first_last(document: dict[str, Any]) -> None:
    document["traceEvents"].append(document["traceEvents"].pop(0))


def _twice(document: dict[str, Any]) -> None:
    document["traceEvents"].insert(0, document["traceEvents"][0])


@pytest.mark.parametrize(
    "change",
    [
        _event("inner", dur=8.5),
        _event("inner", ts=0.0, dur=0.0, pid=0),
        _event("inner", tid=0),
        _event("inner", tid=7),
        _event("inner", ts=1.0005),
        _event("inner", ts=-1.0),
        _event("inner", dur=None),
        _event("inner", cat=""),
        _event("inner", ph="B"),
        _event("outer", ts=0.5),
        _event("error E0106", s="x"),
        _event("thread_name", args={}),
        _event("thread_name", name="thread_names"),
        _event("process_name", args={"name": 3}),
        _first_last,
        _twice,
        lambda document: document.update(displayTimeUnit="us"),
    ],
)
def test_what_breaks_a_rule_is_seen(change: Callable[[dict[str, Any]], object]) -> None:
    assert trace_problems(LINE) == []
    document = json.loads(LINE)
    change(document)
    assert trace_problems(json.dumps(document).encode()) != []


def test_what_is_no_json_is_seen() -> None:
    for text in (LINE.replace(b"0.0", b"NaN", 1), LINE.replace(b'"ph":', b'"ph":"X","ph":', 1)):
        assert text != LINE
        with pytest.raises(AssertionError):
            trace_problems(text)
