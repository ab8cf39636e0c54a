"""Values that the host holds beside memory that is used again: compiled, and on the interpreter, which lays memory out
alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from tests.graphs.onnx_text import onnx_model


def _model(nodes: str, inputs: str, outputs: str, **constants: Any) -> onnx.ModelProto:
    return onnx_model(f"({inputs}) => ({outputs}) {{ {nodes} }}", constants)


def _data(seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((4, 8), dtype=np.float32), rng.standard_normal((8, 8), dtype=np.float32)


LOOP = "b (int64 i, bool go, float[] s) => (bool on, float[] o) { o = Tanh(s)  on = Identity(go) }"
"""A state of unknown rank through as many tanh as `n` says."""

WAYS = {
    "sequence": ("s = SequenceConstruct(a)", "y = SequenceAt(s, zero)"),
    "split": ("s = SplitToSequence<axis = 0>(a)", "y = ConcatFromSequence<axis = 0>(s)"),
    "optional": ("s = Optional(a)", "y = OptionalGetElement(s)"),
    "sequence of sequences' parts": (
        "p = SplitToSequence<axis = 0>(a)  q = SequenceErase(p, zero)  s = SequenceInsert(q, first, zero)",
        "y = ConcatFromSequence<axis = 0>(s)",
    ),
    "loop": ("", f'y = Loop<body = {LOOP}>(n, "", a)'),
}


def way_model(way: str) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """The product lies in the arena; the host holds it while a softmax and another product take its place. The model,
    and feeds."""
    (x, w), more = _data(), "first = Slice(a, zeros, ones, zeros)" if "parts" in way else ""
    making, reading = WAYS[way]
    nodes = f"a = MatMul(x, w)  {more}  {making}  c = Softmax<axis = 0>(x)  e = MatMul(c, w)  {reading}"
    inputs, feeds = "float[4, 8] x", {"x": x}
    if way == "loop":
        inputs, feeds = "float[4, 8] x, int64 n", {"x": x, "n": np.array(0)}
    constants = (
        {"zero": np.array(0), "zeros": np.array([0]), "ones": np.array([1])}
        if way in ("sequence", "sequence of sequences' parts")
        else {}
    )
    return _model(nodes, inputs, "y, e", w=w, **constants), feeds


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("way", WAYS)
def test_what_the_host_holds_outlives_its_memory(way: str, target: str) -> None:
    (model, feeds), (x, w) = way_model(way), _data()
    program = fuseline.compile(model, threads=1, fusion="none", target=target)
    for sign in (1, -1):
        out = program.run({**feeds, "x": sign * x})
        np.testing.assert_allclose(out["y"], sign * x @ w, atol=1e-5)
    if way == "loop":
        np.testing.assert_allclose(program.run({**feeds, "n": np.array(2)})["y"], np.tanh(np.tanh(x @ w)), atol=1e-5)


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_outputs_are_the_callers_alone(target: str) -> None:
    """An output that is an input, a constant, or another output, in memory and held, is an array of its own."""
    x, w = _data()
    names = "whole, parts, again, held, constant, twice"
    nodes = (
        "whole = Identity(x)  parts = SplitToSequence<axis = 0>(x)  again = Identity(parts)"
        "  held = Identity(u)  constant = Identity(k)  twice = Identity(held)"
    )
    model = _model(nodes, "float[4, 8] x, float[] u", names, k=w)
    program = fuseline.compile(model, threads=1, target=target)
    feeds = {"x": x.copy(), "u": x}  # and the same array twice, below
    for given in (feeds, {"x": feeds["x"], "u": feeds["x"]}, {"x": feeds["x"], "u": feeds["x"][1:]}):
        out = program.run(given)
        leaves = [leaf for value in out.values() for leaf in (value if isinstance(value, list) else [value])]
        wanted = [x, *x, *x, given["u"], w, given["u"]]
        for leaf, expected in zip(leaves, [array.copy() for array in wanted], strict=True):
            np.testing.assert_array_equal(leaf.reshape(expected.shape), expected)
            leaf[...] = 9
        np.testing.assert_array_equal(feeds["x"], x)
