"""Sequences that are known while reading: nothing of them is left in the program, and what is not known stays right."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import onnxruntime
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

X = (6, 8)
SIZES = {"k": np.array([1, 2, 3]), "four": np.array(4), "zero": np.array(0), "one": np.array(1), "last": np.array(-1)}

KNOWN = {
    "pieces of one size": "s = SplitToSequence <axis = 1> (x, four)  a = SequenceAt(s, one)  b = SequenceAt(s, last)"
    "  y = Mul(a, b)",
    "a short last piece": "s = SplitToSequence <axis = 0> (x, four)  y = SequenceAt(s, last)",
    "pieces of some sizes": "s = SplitToSequence (x, k)  t = SequenceErase(s, one)"
    "  y = ConcatFromSequence <axis = -2> (t)",
    "rows": "s = SplitToSequence <keepdims = 0> (x)  t = SequenceErase(s)"
    "  y = ConcatFromSequence <axis = 1, new_axis = 1> (t)",
    "put in": "e = SequenceEmpty()  s = SequenceInsert(e, x)  r = Relu(x)  t = SequenceInsert(s, r, zero)"
    "  i = Identity(t)  y = ConcatFromSequence <axis = 1> (i)",
    "how many": "s = SequenceConstruct(x, x, x)  n = SequenceLength(s)  f = Cast <to = 1> (n)  y = Mul(x, f)",
    "a body for each": "s = SplitToSequence(x, k)"
    "  u = SequenceMap <body = b (float[n, 8] q, float[6, 8] w) => (float[n, 8] z)"
    "  { m = ReduceMax <keepdims = 0> (w)  z = Mul(q, m) }> (s, x)  y = ConcatFromSequence <axis = 0> (u)",
}

ON_THE_HOST = {
    "a place that is fed": "s = SplitToSequence(x, k)  y = SequenceAt(s, i)",
    "a length that is fed": "s = SplitToSequence(x, j)  y = ConcatFromSequence <axis = 0> (s)",
    "given out as a value": "s = SplitToSequence(x, k)  o = Optional(s)  t = OptionalGetElement(o)"
    "  y = ConcatFromSequence <axis = 0> (t)",
}


def _model(text: str) -> Any:
    fed = "".join(f", int64{shape} {name}" for name, shape in (("i", "[]"), ("j", "[2]")) if f", {name})" in text)
    held = {name: value for name, value in SIZES.items() if f", {name})" in text}
    return onnx_model(f"(float[6, 8] x{fed.replace('[]', '')}) => (y) {{ {text} }}", held, opset=20)


def _feeds(model: Any) -> dict[str, Any]:
    given = {"x": RNG.standard_normal(X).astype(np.float32), "i": np.array(1), "j": np.array([2, 4])}
    return {value.name: given[value.name] for value in model.graph.input}


def _agrees(model: Any, feeds: Mapping[str, Any], program: Any) -> None:
    wanted: Any = onnxruntime.InferenceSession(model.SerializeToString()).run(None, dict(feeds))
    for found, expected in zip(program.run(feeds).values(), wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_nothing_is_left_of_a_known_sequence(name: str, target: str):
    model = _model(KNOWN[name])
    program = fuseline.compile(model, target=target)
    assert not program.record.host_ops
    _agrees(model, _feeds(model), program)


@pytest.mark.parametrize("name", ON_THE_HOST)
def test_what_only_the_run_knows_is_asked_of_the_host(name: str):
    model = _model(ON_THE_HOST[name])
    program = fuseline.compile(model)
    assert program.record.host_ops
    _agrees(model, _feeds(model), program)


def test_a_sequence_may_be_a_result():
    text = "(float[6, 8] x) => (seq(float[n, 8]) s) { s = SplitToSequence(x, k) }"
    model = onnx_model(text, {"k": SIZES["k"]}, opset=20)
    x = RNG.standard_normal(X).astype(np.float32)
    program = fuseline.compile(model)
    (found,) = program.run({"x": x}).values()
    assert [part.shape for part in found] == [(1, 8), (2, 8), (3, 8)]
    np.testing.assert_array_equal(np.concatenate(found), x)
    assert [one.op_type for one in program.record.host_ops] == ["SequenceConstruct"]


def test_sizes_of_pieces_are_checked_against_a_symbolic_size():
    text = "(float[N, 8] x) => (y) { s = SplitToSequence(x, k)  y = SequenceAt(s, last) }"
    program = fuseline.compile(onnx_model(text, {"k": SIZES["k"], "last": SIZES["last"]}, opset=20))
    x = RNG.standard_normal(X).astype(np.float32)
    (found,) = program.run({"x": x}).values()
    np.testing.assert_array_equal(found, x[3:])
    with pytest.raises(fuseline.FuselineError, match="E0203"):
        program.run({"x": x[:4]})


BAGS = """(float[24, 5] w, int64[12] i) => (y) {
    g = Gather(w, i)  empty = SequenceEmpty()
    n, s = Loop <body = b (int64 t, bool c, int64 at, seq(float[1, 5]) held)
                       => (bool go, int64 next, seq(float[1, 5]) more) {
        from = Gather(offsets, at)  next = Add(at, one)  to = Gather(offsets, next)
        a = Unsqueeze(from, axes)  z = Unsqueeze(to, axes)
        none = Equal(from, to)
        row = If <then_branch = t () => (float[1, 5] r) { r = ConstantOfShape(size) },
                  else_branch = e () => (float[1, 5] q) { part = Slice(g, a, z)  q = ReduceSum(part, axes) }> (none)
        more = SequenceInsert(held, row)  go = Less(next, bags)
    }> (, yes, zero, empty)
    y = ConcatFromSequence <axis = 0> (s) }"""


@pytest.mark.parametrize("offsets", [[0, 4, 8, 12], [0, 1, 1, 7, 12], [0, 12]])
def test_bags_of_embeddings_as_torch_exports_them(offsets: list[int]):
    """A loop that only a condition ends, over a sequence: it is known when, and what is in it."""
    held = {
        "offsets": np.array(offsets), "bags": np.array(len(offsets) - 1), "one": np.array(1), "zero": np.array(0),
        "axes": np.array([0]), "yes": np.array(True), "size": np.array([1, 5]),
    }  # fmt: skip
    model = onnx_model(BAGS, held, opset=20)
    program = fuseline.compile(model, threads=2)
    assert not program.record.host_ops
    table, places = RNG.standard_normal((24, 5)).astype(np.float32), RNG.integers(0, 24, 12)
    rows = table[places]
    wanted = [rows[a:b].sum(axis=0) for a, b in pairwise(offsets)]
    (found,) = program.run({"w": table, "i": places}).values()
    np.testing.assert_allclose(found, np.stack(wanted), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("start", "trips"), [(True, 3), (False, 0)])
def test_a_loop_that_a_known_condition_ends(start: bool, trips: int):
    text = """(float[4] x) => (y) {
        n, y = Loop <body = b (int64 t, bool c, int64 at, float[4] held) => (bool go, int64 next, float[4] more) {
            next = Add(at, one)  more = Add(held, held)  go = Less(next, three) }> (, start, zero, x) }"""
    held = {"one": np.array(1), "three": np.array(3), "zero": np.array(0), "start": np.array(start)}
    program = fuseline.compile(onnx_model(text, held, opset=20))
    x = RNG.standard_normal(4).astype(np.float32)
    (found,) = program.run({"x": x}).values()
    np.testing.assert_array_equal(found, x * 2**trips)
    assert not program.record.host_ops
