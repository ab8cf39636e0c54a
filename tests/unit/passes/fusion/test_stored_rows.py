"""Rows of unknown length between roots are results of their dispatch, where that pays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import onnxruntime as ort
import pytest

import fuseline
from fuseline.passes.fusion.group import Group
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

from .programs import TARGET, Program

Feeds = Mapping[str, np.ndarray]

CHAINS = {
    "products": "(float[4000, q] a, float[q, k] b, float[k, n] c) => (y) { t = MatMul(a, b)  y = MatMul(t, c) }",
    "relu": "(float[4000, q] a, float[q, k] b, float[k, n] c) => (y)"
    " { t = MatMul(a, b)  r = Relu(t)  y = MatMul(r, c) }",
    "kept": "(float[4000, q] a, float[q, k] b, float[k, n] c) => (y, t)"
    " { t = MatMul(a, b)  r = Relu(t)  y = MatMul(r, c) }",
    "softmax": "(float[4000, q] a, float[q, k] b) => (y) { t = MatMul(a, b)  y = Softmax <axis = -1> (t) }",
    "residual norm": "(float[4000, k] a, float[k, k] b, float[k] g) => (y)"
    " { t = MatMul(a, b)  u = Add(t, a)  y = LayerNormalization <axis = -1> (u, g) }",
    "norm and product": "(float[4000, q] a, float[q, k] b, float[k] g, float[k, n] c) => (y)"
    " { t = MatMul(a, b)  u = LayerNormalization <axis = -1> (t, g)  y = MatMul(u, c) }",
    "attention": "(float[h, m, q] a, float[h, q, k] b, float[h, k, n] c) => (y)"
    " { t = MatMul(a, b)  u = Softmax <axis = -1> (t)  y = MatMul(u, c) }",
    "two readers": "(float[4000, q] a, float[q, k] b, float[k, n] c, float[k, n] d) => (y, z)"
    " { t = MatMul(a, b)  r = Relu(t)  s = Tanh(t)  y = MatMul(r, c)  z = MatMul(s, d) }",
}


def _chain(rows: int | str = 100_000, columns: int | str = "k", *, kept: bool = False) -> Program:
    p = Program((rows, 32), (32, columns), (columns, 16))
    first = p.matmul(p.x[0], p.x[1])
    return p.done(p.matmul(p.unary(first), p.x[2]), *([first] if kept else []))


def _only_group(p: Program) -> Group:
    (group,) = p.partition().groups
    return group


def _feeds(name: str, **sizes: int) -> Feeds:
    inputs = onnx_model(CHAINS[name]).graph.input
    shapes = {one.name: [d.dim_value or sizes[d.dim_param] for d in one.type.tensor_type.shape.dim] for one in inputs}
    return {key: RNG.standard_normal(shape, dtype=np.float32) for key, shape in shapes.items()}


def test_what_follows_point_by_point_is_stored_not_the_product():
    group = _only_group(_chain())
    (stored,) = group.stored_rows.values
    assert [node.kind.value for node in group.members if stored in node.op.results] == ["elementwise"]
    assert group.scratch_bytes is None and group.scratch_beside_rows == 0


def test_a_value_that_leaves_is_stored_once():
    group = _only_group(_chain(kept=True))
    assert len(group.stored_rows.added) == 1 and len(group.results()) == 2


def test_the_record_has_the_bytes_that_are_stored_anyway():
    (decision,) = [one for one in _chain().partition().decisions if one.rule == "stored-rows"]
    assert decision.verdict == "fused" and decision.numbers["stored_bytes"] > 0


def test_rows_that_fit_lie_in_scratch():
    group = _only_group(_chain(columns=48))
    assert not group.stored_rows.values and group.scratch_beside_rows == group.scratch_bytes


def test_few_rows_do_not_pay_for_packing_again():
    (decision,) = [one for one in _chain(rows=64).partition().decisions if one.rule == "stored-rows"]
    assert (decision.verdict, decision.code) == ("missed", "unprofitable")


@pytest.mark.parametrize(
    ("limits", "code"), [({"roots_limit": 1}, "roots-limit"), ({"binding_limit": 4}, "binding-limit")]
)
def test_the_limits_of_a_target_hold(limits: Mapping[str, int], code: str):
    decisions = _chain().partition(replace(TARGET, **limits)).decisions
    assert code in {one.code for one in decisions}


def test_a_softmax_that_streams_stores_nothing():
    p = Program((4096, 32), (32, "k"), ("k", 32))
    p.done(p.matmul(p.softmax(p.matmul(p.x[0], p.x[1])), p.x[2]))
    (group,) = p.partition(replace(TARGET, streamed_points=64)).groups
    assert group.streamed and not group.stored_rows.values


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CHAINS)
def test_one_dispatch_computes_what_several_do(name: str, threads: int):
    model = onnx_model(CHAINS[name])
    program = fuseline.compile(model, threads=threads)
    assert program.stats["dispatches"] == 1 and program.stats["families"] == {"blocked": 1}
    session = ort.InferenceSession(model.SerializeToString())
    for q, k, n in [(19, 53, 21), (64, 700, 5), (1, 1, 1), (8, 0, 4)]:
        if k == 0 and "norm" in name:
            continue  # onnxruntime takes no rows without elements
        feeds = dict(_feeds(name, q=q, k=k, n=n, h=3, m=37))
        for found, wanted in zip(program.run(feeds).values(), map(np.asarray, session.run(None, feeds)), strict=True):
            largest = max(1.0, float(np.abs(wanted).max(initial=0)))
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3 * largest)


def _squared(batches: int, width: int) -> str:
    """Rows that a product reads in two orders: it has a grid only where they are evaluated as it reads them."""
    return (
        f"(float[{batches}, m, {width}] x) => (y, t) {{ r = Sigmoid(x)  c = Transpose <perm = [0, 2, 1]> (x)"
        "  t = MatMul(r, c)  u = Softmax <axis = -1> (t)  y = MatMul(u, r) }"
    )


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("batches", "width"), [(16, 1), (8, 1), (5, 1), (3, 7)])
def test_what_is_evaluated_where_it_is_read_is_not_stored(batches: int, width: int, threads: int):
    model = onnx_model(_squared(batches, width))
    compiled = fuseline.compile(model, threads=threads)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for rows in RNG.choice(np.arange(1, 90), 3, replace=False):
        x = RNG.standard_normal((batches, rows, width), dtype=np.float32)
        wanted = map(np.asarray, session.run(None, {"x": x}))
        for ours, theirs in zip(compiled.run({"x": x}).values(), wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("level", ["default", "aggressive"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("after", ["Tanh", "Neg", "Identity"])
def test_what_was_evaluated_where_it_is_read_is_in_the_grid_once_it_is_stored(after: str, threads: int, level: str):
    """A product reads its rows in place, and then goes into one dispatch with what they are made of."""
    size = int(RNG.integers(1, 20))
    text = (
        f"(float[h, m, {size}] a, float[h, {size}, m] b, float[h, m, {size}] c) => (y)"
        f" {{ t = MatMul(a, b)  u = Softmax <axis = -1> (t)  v = {after}(u)  y = MatMul(v, c) }}"
    )
    model, without = onnx_model(text), ["long-rows"]
    program = fuseline.compile(model, threads=threads, fusion=level, without_rules=without, cache=False)
    reference = fuseline.compile(model, target="interpreter", fusion="none", cache=False)
    for h, m in RNG.integers(1, 40, (3, 2)):
        shapes = {"a": (h, m, size), "b": (h, size, m), "c": (h, m, size)}
        feeds = {name: RNG.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}
        np.testing.assert_allclose(program.run(feeds)["y"], reference.run(feeds)["y"], rtol=0, atol=1e-4 * size)


LATER_READERS = {
    "by way of a concat": "(float[40, n, 16] a, float[16, 16] b, float[16, 8] c) => (y, s) { t = MatMul(a, b)"
    "  zero = Constant <value = int64[1] {0}> ()  half = Constant <value = int64[1] {8}> ()"
    "  end = Constant <value = int64[1] {16}> ()  last = Constant <value = int64[1] {2}> ()"
    "  l = Slice(t, zero, half, last)  r = Slice(t, half, end, last)  e = Tanh(l)  v = Mul(e, r)"
    "  over = Constant <value = int64[2] {1, 2}> ()  s = ReduceSum <keepdims = 0> (e, over)"
    "  u = Concat <axis = -1> (v, l)  y = MatMul(u, c) }",
    "beside what a later root makes": "(float[40, n, 16] a, float[16, 96] b, float[96, 32] c, float[96, 32] d,"
    " float[32, 8] f) => (y) { t = MatMul(a, b)  x = Relu(t)  u = MatMul(x, c)  v = Relu(u)"
    "  over = Constant <value = int64[1] {1}> ()  p = ReduceMean <keepdims = 1> (x, over)  q = MatMul(p, d)"
    "  g = Sigmoid(q)  m = Mul(v, g)  y = MatMul(m, f) }",
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", LATER_READERS)
def test_what_a_later_root_reads_is_stored_wherever_it_is_read(name: str, threads: int):
    model = onnx_model(LATER_READERS[name])
    program = fuseline.compile(model, threads=threads)
    assert "loop-nest" not in program.stats["families"] and program.stats["families"]["blocked"] == 1
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for rows in (1, 29, 300):
        shapes = [(one.name, one.shape) for one in session.get_inputs()]
        feeds = {
            key: RNG.standard_normal([rows if d == "n" else d for d in dims], dtype=np.float32) / 4
            for key, dims in shapes
        }
        for found, wanted in zip(program.run(feeds).values(), map(np.asarray, session.run(None, feeds)), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3 * max(1.0, float(np.abs(wanted).max())))
