"""Elementwise readers of a scatter are computed in its dispatch when the walk is over; what does not fit the walk stays
outside. Values against onnx's own implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import attributes_of, onnx_model

Array = NDArray[Any]
Feeds = dict[str, Array]


def check(model: onnx.ModelProto, feeds: Feeds, dispatches: int, **options: Any) -> fuseline.CompiledModel:
    """On both targets, in so many dispatches on the CPU."""
    reference: Any = ReferenceEvaluator(model)
    expected = reference.run(None, feeds)
    program = fuseline.compile(model, threads=2, **options)
    assert program.stats["dispatches"] == dispatches, [(d.code, d.detail) for d in program.decisions]
    for target in (program, fuseline.compile(model, target="interpreter")):
        for found, wanted in zip(target.run(feeds).values(), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    return program


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def rows(count: int, of: int) -> Array:
    """Rows, each at most once: the order of updates does not matter."""
    return RNG.permutation(of)[:count].reshape(count, 1).astype(np.int64)


HALF_READERS = {
    "one": ("y = Relu(s)", "y"),
    "a chain": ("a = Mul(s, s)  c = Tanh(a)  y = Sub(c, u2)", "y"),
    "two readers": ("y = Relu(s)  z = Tanh(s)", "y, z"),
    "the totals as well": ("y = Relu(s)", "y, s"),
    "a transposed result": ("t = Transpose<perm=[1, 0]>(s)  y = Neg(t)", "y"),
}


@pytest.mark.parametrize("name", HALF_READERS)
@pytest.mark.parametrize("element", ["float16", "bfloat16"])
@pytest.mark.parametrize("scatter", ["f = ConstantOfShape(shape)  o = Cast<to={to}>(f)", "o = Abs(u2)", "o = Neg(u2)"])
def test_readers_of_halves_that_are_scattered(name: str, element: str, scatter: str):
    """As many dispatches as in f32: what lies there stays a half, whoever computes with it."""
    size, width, updates = (int(RNG.integers(low, low + 20)) for low in (20, 1, 1))
    text, results = HALF_READERS[name]
    to = {"float16": 10, "bfloat16": 16}[element]
    model = onnx_model(
        f"({element}[{updates},{width}] u, int64[{updates},1] i, {element}[{size},{width}] u2) => ({results}) {{"
        f" {scatter.format(to=to)}  e = Exp(u)  s = ScatterND(o, i, e)  {text} }}",
        shape=np.array([size, width], np.int64),
    )
    program = fuseline.compile(model, threads=2, cache=False)
    assert program.stats["dispatches"] == 1, [(d.code, d.detail) for d in program.decisions]
    halves = {one.name: one.dtype for one in program.inputs}
    feeds = {one: floats(*shape).astype(halves[one]) for one, shape in (("u", (updates, width)), ("u2", (size, width)))}
    feeds["i"] = rows(updates, size)
    expected = fuseline.compile(model, target="interpreter", fusion="none", cache=False).run(feeds)
    for key, found in program.run(feeds).items():
        wanted = expected[key].astype(np.float32)
        np.testing.assert_allclose(found.astype(np.float32), wanted, rtol=2e-2, atol=2e-2)


READERS = {
    "one": ("y = Relu(s)", "y"),
    "a chain with other operands": ("a = Mul(s, b)  c = Exp(a)  y = Sub(c, b)", "y"),
    "a broadcast operand": ("a = Mul(s, k)  y = Sigmoid(a)", "y"),
    "two readers": ("y = Relu(s)  z = Tanh(s)", "y, z"),
    "the totals as well": ("y = Relu(s)", "y, s"),
    "a result of another type beside": ("y = Relu(s)  h = Greater(s, b)", "y, h"),
    "a transposed result": ("t = Transpose<perm=[1, 0]>(s)  y = Neg(t)", "y"),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(("size", "width", "updates"), [(16, 8, 4), (7, 67, 7), (1, 1, 1), (33, 3, 20)])
def test_readers_of_a_scatter_into_a_fill(name: str, size: int, width: int, updates: int):
    text, results = READERS[name]
    model = onnx_model(
        f"(float[{updates},{width}] u, int64[{updates},1] i, float[{size},{width}] b) => ({results}) {{"
        f" f = ConstantOfShape(shape)  s = ScatterND(f, i, u)  {text} }}",
        shape=np.array([size, width]),
        k=floats(width),
    )
    feeds = {"u": floats(updates, width), "i": rows(updates, size), "b": floats(size, width)}
    check(model, feeds, 1)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_elements_along_any_axis(reduction: str, axis: int):
    shape, taken = (5, 6, 19), 4
    given = tuple(taken if i == axis else size for i, size in enumerate(shape))
    held = attributes_of({"axis": axis, "reduction": reduction})
    model = onnx_model(
        f"(float[5,6,19] x, int64[{','.join(map(str, given))}] i, float[{','.join(map(str, given))}] u) => (y)"
        f" {{ s = ScatterElements{held}(x, i, u)  a = Mul(s, x)  y = Tanh(a) }}"
    )
    positions = np.stack([RNG.permutation(shape[axis])[:taken] for _ in range(int(np.prod(given)) // taken)])
    positions = np.moveaxis(positions.reshape(*(n for i, n in enumerate(given) if i != axis), taken), -1, axis)
    check(model, {"x": floats(*shape), "i": positions.astype(np.int64), "u": floats(*given)}, 1)


@pytest.mark.parametrize(("size", "updates"), [(1, 1), (9, 4), (40, 40)])
def test_symbolic_sizes(size: int, updates: int):
    model = onnx_model(
        "(float[k, 8] u, int64[k, 1] i, float[n, 8] b) => (y)"
        " { shape = Shape(b)  f = ConstantOfShape(shape)  s = ScatterND(f, i, u)  a = Add(s, b)  y = Mul(a, b) }"
    )
    check(model, {"u": floats(updates, 8), "i": rows(updates, size), "b": floats(size, 8)}, 1)


def test_the_operand_of_an_epilogue_is_not_overwritten_by_the_totals():
    """The reader's other operand dies here: its place may not hold the totals meanwhile."""
    model = onnx_model(
        "(float[4, 8] u, int64[4, 1] i, float[16, 16] b) => (y)"
        " { m = MatMul(b, w)  f = ConstantOfShape(shape)  s = ScatterND(f, i, u)  a = Mul(s, m)  v = Add(a, m)"
        "   y = MatMul(v, q) }",
        shape=np.array([16, 8]),
        w=floats(16, 8),
        q=floats(8, 8),
    )
    feeds = {"u": floats(4, 8), "i": rows(4, 16), "b": floats(16, 16)}
    program = fuseline.compile(model, threads=1)
    reference: Any = ReferenceEvaluator(model)
    np.testing.assert_allclose(program.run(feeds)["y"], reference.run(None, feeds)[0], rtol=1e-3, atol=1e-3)


REFUSED = {
    "a reduction of the updates": (
        "(y)",
        "e = ReduceSum<keepdims=0>(v, ax)  s = ScatterND(f, i, e)  y = Relu(s)",
        "walk",
        "in one walk",
    ),
    "no result of the type": ("(y)", "s = ScatterND(f, i, u)  y = Greater(s, b)", "walk", "no result has the type"),
    "a result beside": ("(y, e)", "s = ScatterND(f, i, u)  e = Tanh(b)  y = Mul(s, e)", "walk", "does not follow"),
    "a reduction behind": ("(y)", "s = ScatterND(f, i, u)  y = ReduceSum<keepdims=0>(s, ax)", "walk", "in one walk"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_the_walk_stays_outside(name: str):
    results, text, code, detail = REFUSED[name]
    model = onnx_model(
        f"(float[4, 8] u, int64[4, 1] i, float[16, 8] b, float[4, 5, 8] v) => {results}"
        f" {{ f = ConstantOfShape(shape)  {text} }}",
        shape=np.array([16, 8]),
        ax=np.array([1]),
    )
    feeds = {"u": floats(4, 8), "i": rows(4, 16), "b": floats(16, 8), "v": floats(4, 5, 8)}
    program = check(model, feeds, 2)
    assert any(d.code == code and detail in d.detail for d in program.decisions)
    assert "scatter" in program.stats["families"]


def test_a_large_reader_keeps_its_threads():
    """Blocks of 64 columns are too few for the threads; the reader alone is shared out along the rows, too."""
    model = onnx_model(
        "(float[4, 8] u, int64[4, 1] i) => (y) { f = ConstantOfShape(shape)  s = ScatterND(f, i, u)  y = Tanh(s) }",
        shape=np.array([5000, 8]),
    )
    program = check(model, {"u": floats(4, 8), "i": rows(4, 5000)}, 2)
    assert any(d.code == "parallelism" and "1 parallel iterations" in d.detail for d in program.decisions)


TRUTH_READERS = {
    "cast": "y = Cast<to={to}>(s)",
    "not and cast": "n = Not(s)  y = Cast<to={to}>(n)",
    "mask": "y = Where(s, x, x2)",
    "mask of several": "n = And(s, k)  w = Where(n, x, x2)  y = Neg(w)",
}


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("element", ["float", "float16", "double", "int32"])
@pytest.mark.parametrize("name", TRUTH_READERS)
def test_readers_of_truths_that_are_scattered(name: str, element: str, axis: int):
    """Truths lie in the place of what is made of them."""
    size = [int(RNG.integers(5, 60)), int(RNG.integers(5, 60))]
    put = [int(RNG.integers(1, 5)) if i == axis else one for i, one in enumerate(size)]
    whole, some = ",".join(map(str, size)), ",".join(map(str, put))
    to = {"float": 1, "float16": 10, "double": 11, "int32": 6}[element]
    model = onnx_model(
        f"(bool[{whole}] m, int64[{some}] i, bool[{some}] u, bool[{whole}] k, {element}[{whole}] x,"
        f" {element}[{whole}] x2) => ({element}[{whole}] y) {{ s = ScatterElements<axis={axis}>(m, i, u)"
        f" {TRUTH_READERS[name].format(to=to)} }}"
    )
    dtype: Any = {"float": np.float32, "float16": np.float16, "double": np.float64, "int32": np.int32}[element]
    feeds: Feeds = {one: RNG.random(size) < 0.5 for one in "mk"} | {"u": RNG.random(put) < 0.5}
    feeds |= {one: (8 * RNG.standard_normal(size)).astype(dtype) for one in ("x", "x2")}
    order = RNG.permuted(np.indices(size)[axis], axis=axis)
    feeds["i"] = np.take(order, range(put[axis]), axis).astype(np.int64)
    check(model, feeds, 1)


def test_truths_alone_and_truths_that_others_read():
    """What stays a truth is put so; a mask that is returned as well is no number of the result."""
    text = (
        "(bool[9,20] m, int64[9,3] i, bool[9,3] u, float[9,20] x) => ({}) {{ s = ScatterElements<axis=1>(m, i, u) {} }}"
    )
    feeds = {"m": RNG.random((9, 20)) < 0.5, "u": RNG.random((9, 3)) < 0.5, "x": floats(9, 20)}
    feeds["i"] = np.stack([RNG.permutation(20)[:3] for _ in range(9)]).astype(np.int64)
    check(onnx_model(text.format("s", "")), {k: v for k, v in feeds.items()}, 1)
    check(onnx_model(text.format("y, s", "z = Neg(x)  y = Where(s, x, z)")), feeds, 1)
