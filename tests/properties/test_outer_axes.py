"""Reductions over outer axes and what reads them beside the rows: one dispatch, walked by blocks of columns, with the
numbers of onnxruntime."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

BODIES = {
    "softmax": "y = Softmax<axis = {axis}>(x)",
    "log softmax": "y = LogSoftmax<axis = {axis}>(x)",
    "centred": "m = ReduceMean<axes = [{axis}]>(x)  y = Sub(x, m)",
    "normalised": "m = ReduceMean<axes = [{axis}]>(x)  d = Sub(x, m)  q = Mul(d, d)  "
    "v = ReduceMean<axes = [{axis}]>(q)  s = Add(v, e)  r = Sqrt(s)  y = Div(d, r)",
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(
    ("shape", "axis"), [((7, 5), 0), ((33, 130), 0), ((64, 1), 0), ((3, 17, 21), 1), ((2, 9, 3, 40), 1), ((70, 300), 0)]
)
def test_one_dispatch(body: str, shape: tuple[int, ...], axis: int) -> None:
    for threads in (1, 3):
        _check(body, list(shape), list(shape), axis, threads, 1)


@pytest.mark.parametrize("body", BODIES)
def test_rows_and_columns_known_at_run_time(body: str) -> None:
    """There is no scratch for a column without a bound: whoever reads what would lie there evaluates it."""
    for sizes in ((1, 1), (13, 50), (200, 17)):
        _check(body, ["n", "m"], list(sizes), 0, 2, 1)


def test_rows_that_leave_the_cache_stay_apart() -> None:
    _check("centred", [6000, 250], [6000, 250], 0, 1, 2)


def _check(body: str, shape: list[object], sizes: list[int], axis: int, threads: int, dispatches: int) -> None:
    dims = ", ".join(map(str, shape))
    model = onnx_model(f"(float[{dims}] x) => (y) {{ {BODIES[body].format(axis=axis)} }}", opset=17, e=np.float32(0.1))
    x = RNG.standard_normal(sizes).astype(np.float32)
    found = fuseline.compile(model, threads=threads)
    expected = np.asarray(ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0])
    np.testing.assert_allclose(found.run({"x": x})["y"], expected, rtol=1e-4, atol=1e-5)
    assert found.stats["dispatches"] == dispatches, [decision.code for decision in found.decisions]
