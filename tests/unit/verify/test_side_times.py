"""Seconds of each dispatch of a record."""

from __future__ import annotations

import numpy as np

import fuseline
from fuseline.runtime import Session
from fuseline.verify.side_times import record_seconds, run_seconds
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

TEXT = "(float[n, 64] x) => (y) { a = MatMul(x, w)  b = Softmax<axis = 0>(a)  c = NonZero(b)  y = Cast<to = 1>(c) }"


def test_every_dispatch_has_its_time_in_the_order_of_the_record() -> None:
    model = onnx_model(TEXT, w=RNG.standard_normal((64, 32), dtype=np.float32))
    program = fuseline.compile(model, threads=1, fusion="none", cache=False)
    assert isinstance(program.session, Session)
    feeds = {"x": RNG.standard_normal((700, 64), dtype=np.float32)}
    found = record_seconds(program.session, program.record, feeds)
    assert len(found) == len(program.record.dispatches) > 2
    assert all(seconds >= 0 for seconds in found) and max(found) > 0


def test_runs_are_timed_in_turns() -> None:
    calls: list[str] = []
    found = run_seconds([lambda: calls.append("a"), lambda: calls.append("b")], rounds=3)
    assert len(found) == 2 and set(calls) == {"a", "b"}
