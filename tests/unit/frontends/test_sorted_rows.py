"""What is sorted is one dispatch, with what makes the keys and what follows from the order point by point. Values
against onnxruntime, or NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

Array = NDArray[Any]
Feeds = dict[str, Array]

TOP = "k = Constant<value_ints = [5]>()  v, i = TopK(y, k)"
"""The first five of a row; what is drawn has equals."""

ONE: dict[str, str] = {
    "values and places": f"(float[4, 61] x) => (float[] v, int64[] i) {{ y = Identity(x) {TOP} }}",
    "values alone": f"(float[4, 61] x) => (float[] v) {{ y = Identity(x) {TOP} }}",
    "places alone": f"(float[4, 61] x) => (int64[] i) {{ y = Identity(x) {TOP} }}",
    "one row": f"(float[61] x) => (float[] v, int64[] i) {{ y = Identity(x) {TOP} }}",
    "a producer": f"(float[4, 61] x, float[61] b) => (float[] v, int64[] i) {{ s = Add(x, b) y = Relu(s) {TOP} }}",
    "a reader": f"(float[4, 61] x) => (float[] w, int64[] i) {{ y = Identity(x) {TOP} a = Abs(v) w = Sqrt(a) }}",
    "another tensor's elements": (
        f"(float[4, 61] x, float[4, 61] z) => (float[] v, float[] w) "
        f"{{ y = Identity(x) {TOP} w = GatherElements<axis = 1>(z, i) }}"
    ),
    "parts": f"(float[4, 61] x, float[4, 7] z) => (float[] v, int64[] i) {{ y = Concat<axis = 1>(z, x) {TOP} }}",
    "turned": f"(float[61, 4] x) => (float[] v, int64[] i) {{ y = Transpose(x) {TOP} }}",
    "a result turned": f"(float[4, 61] x) => (float[] w) {{ y = Identity(x) {TOP} w = Transpose(v) }}",
    "flattened scores": (
        "(float[1, 20, 7] x) => (float[] v, int64[] c, int64[] q) { g = Abs(x)"
        " s = Constant<value_ints = [1, 140]>() f = Reshape(g, s) y = Sqrt(f)"
        f" {TOP} n = Constant<value_int = 7>() c = Mod(i, n) q = Div(i, n) }}"
    ),
    "all in order": (
        "(float[4, 61] x) => (float[] w, int64[] i) { y = Neg(x) k = Constant<value_ints = [61]>()"
        " v, i = TopK(y, k) w = Neg(v) }"
    ),
    "the middle axis": (
        "(float[3, 19, 5] x) => (float[] v, int64[] i) { k = Constant<value_ints = [4]>() v, i = TopK<axis = 1>(x, k) }"
    ),
}


def compared(program: fuseline.CompiledModel, model: onnx.ModelProto, feeds: Feeds) -> None:
    """Raises AssertionError where a program and onnxruntime differ."""
    session: Any = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for found, wanted in zip(program.run(feeds).values(), session.run(None, feeds), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def drawn(model: onnx.ModelProto) -> Feeds:
    """Numbers of which many are equal."""
    shapes = {value.name: [d.dim_value for d in value.type.tensor_type.shape.dim] for value in model.graph.input}
    return {name: (RNG.integers(-9, 10, shape) / 2).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ONE)
def test_one_dispatch(name: str, threads: int) -> None:
    model = onnx_model(ONE[name])
    program = fuseline.compile(model, threads=threads)
    assert program.stats["dispatches"] == 1, [(d.code, d.detail) for d in program.decisions]
    assert program.stats["families"] == {"order": 1}
    assert not program.record.host_ops and program.stats["near_idioms"] == 0
    compared(program, model, drawn(model))


SIZES = {
    "all of a row": "k = Shape<start = 1, end = 2>(x)",
    "at most 30": "n = Shape<start = 1, end = 2>(x) c = Constant<value_ints = [30]>() k = Min(n, c)",
}


@pytest.mark.parametrize("element", ["float", "double"])
@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_only_the_run_knows(name: str, element: str) -> None:
    model = onnx_model(f"({element}[b, n] x) => ({element}[] v, int64[] i) {{ {SIZES[name]} v, i = TopK(x, k) }}")
    program = fuseline.compile(model, threads=2)
    assert program.stats["families"] == {"order": 1} and not program.record.host_ops
    dtype = {"float": np.float32, "double": np.float64}[element]
    for shape in ((4, 100), (1, 1), (3, 17), (1, 40_000)):
        compared(program, model, {"x": RNG.integers(-50, 50, shape).astype(dtype)})


def test_the_first_alone_is_an_argument_reduction() -> None:
    model = onnx_model("(float[4, 61] x) => (float[] v, int64[] i) { v, i = TopK<largest = 0>(x, k) }", k=[1])
    program = fuseline.compile(model, threads=1)
    assert program.stats["families"] == {"selection": 1}
    compared(program, model, drawn(model))


def test_no_elements_and_no_rows() -> None:
    for shape, k in (((0, 7), 3), ((4, 7), 0)):
        model = onnx_model(f"(float[{shape[0]}, 7] x) => (float[] v, int64[] i) {{ v, i = TopK(x, k) }}", k=[k])
        x = RNG.standard_normal(shape).astype(np.float32)
        found = fuseline.compile(model, threads=1).run({"x": x})
        assert [value.shape for value in found.values()] == [(shape[0], k)] * 2


APART = {
    "a softmax behind": (f"(float[4, 61] x) => (float[] w) {{ y = Identity(x) {TOP} w = Softmax(v) }}", "walk"),
    "rows at the places": (
        f"(float[61] x, float[61, 4] z) => (float[] v, float[] w) {{ y = Identity(x) {TOP} w = Gather(z, i) }}",
        "walk",
    ),
}


@pytest.mark.parametrize("name", APART)
def test_what_stays_apart_says_why(name: str) -> None:
    text, code = APART[name]
    model = onnx_model(text)
    program = fuseline.compile(model, threads=1)
    assert program.stats["dispatches"] == 2 and code in [d.code for d in program.decisions]
    compared(program, model, drawn(model))


@pytest.mark.parametrize("work", ["Identity", "Abs"])
def test_two_of_one_tensor_make_their_keys_as_they_walk_by(work: str) -> None:
    """The first five and the first nine of a row: nothing is stored for both."""
    more = "m = Constant<value_ints = [9]>()  w, j = TopK(y, m)"
    results = "float[] v, int64[] i, float[] w, int64[] j"
    model = onnx_model(f"(float[4, 61] x) => ({results}) {{ y = {work}(x) {TOP} {more} }}")
    program = fuseline.compile(model, threads=1)
    stored = 0 if work == "Identity" else 1
    assert program.stats["families"]["order"] == 1 and program.stats["dispatches"] == 1 + stored  # small: two arms
    compared(program, model, drawn(model))


def test_much_work_before_a_row_is_shared_out() -> None:
    """A row is one thread's: two share the functions of a long one."""
    model = onnx_model(
        f"(float[1, 100000] x) => (float[] v, int64[] i) {{ e = Erf(x) t = Tanh(e) s = Sin(t) y = Exp(s) {TOP} }}"
    )
    one, two = (fuseline.compile(model, threads=threads) for threads in (1, 2))
    assert one.stats["dispatches"] == 1 and two.stats["dispatches"] == 2
    refused = [d for d in two.decisions if d.code == "parallelism"]
    assert refused and refused[0].numbers["predicted_loss_ns"] > 0


def test_the_rule_may_be_left_out() -> None:
    model = onnx_model(ONE["values and places"])
    program = fuseline.compile(model, threads=1, without_rules=["order-chain"])
    assert program.stats["dispatches"] > 1
    compared(program, model, drawn(model))
