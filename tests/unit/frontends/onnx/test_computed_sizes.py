"""Sizes and amounts that are fed: one program for all of them, no operator on the host, onnxruntime's values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import parser

import fuseline
from tests.draws import RNG

EXPAND = """(float[1,n] x, int64[1] k) => (float[t,n] y)
    { n = Shape<start=1>(x) s = Concat<axis=0>(k, n) e = Expand(x, s) y = Exp(e) }"""
FILL = """(float[n] x, int64[1] k) => (float[t,n] y)
    { n = Shape(x) s = Concat<axis=0>(k, n) e = ConstantOfShape(s) y = Add(e, x) }"""
TILE = """(float[4,n] x, int64[1] k) => (float[4,m] y) <int64[1] o = {1}>
    { p = Concat<axis=0>(o, k) q = Tile(x, p) y = Exp(q) }"""
SLICE = """(float[4,n] x, int64[1] a, int64[1] k) => (float[4,m] y) <int64[1] i = {1}, int64[1] j = {STEP}>
    { q = Slice(x, a, k, i, j) y = Exp(q) }"""
RANGE = """(int64 k, int64 a) => (int64[m] y) <int64 j = {STEP}> { r = Range(a, k, j) y = Add(r, r) }"""


def _model(text: str) -> Any:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}')


def _agree(text: str, cases: list[dict[str, Any]]) -> None:
    model = _model(text)
    expected = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    compiled = fuseline.compile(model)
    assert not compiled.record.host_ops
    for case in cases:
        wanted: Any = expected.run(None, case)[0]
        np.testing.assert_allclose(compiled.run(case)["y"], wanted, 1e-4, 1e-5)


def _x(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("text", "rows"), [(EXPAND, (1,)), (FILL, ()), (TILE, (4,))])
def test_sizes_may_be_anything_from_nothing_on(text: str, rows: tuple[int, ...]):
    _agree(text, [{"x": _x(*rows, n), "k": np.array([k])} for n in (1, 5) for k in (0, 1, 7)])


@pytest.mark.parametrize("step", [1, 3])
def test_positions_count_from_either_end_and_are_clamped(step: int):
    places = [(a, k) for a in (0, 2, -3, -99) for k in (0, 1, 4, -1, 2**63 - 1, -99)]
    cases = [{"x": _x(4, n), "a": np.array([a]), "k": np.array([k])} for n in (1, 9) for a, k in places]
    _agree(SLICE.replace("STEP", str(step)), cases)


@pytest.mark.parametrize("step", [1, 3, -2])
def test_ranges_between_numbers_that_are_fed(step: int):
    cases = [{"a": np.array(a), "k": np.array(k)} for a in (-3, 0, 4) for k in (-5, 0, 4, 9)]
    _agree(RANGE.replace("STEP", str(step)), cases)


@pytest.mark.parametrize(("text", "shape"), [(FILL, (3,)), (TILE, (4, 3)), (EXPAND, (1, 3))])
def test_a_negative_size_is_refused_by_name(text: str, shape: tuple[int, ...]):
    with pytest.raises(fuseline.FuselineError, match="computed as -2") as error:
        fuseline.compile(_model(text)).run({"x": _x(*shape), "k": np.array([-2])})
    assert error.value.code == "E0203" and error.value.node


AGAIN = """(int64[6] x, int64[6] w) => (int64[a] y, int64[b] z)
    <int64 zero = {0}, int64 one = {1}, int64 other = {OTHER}>
    { m = ReduceMax<keepdims=0>(x) p = Add(m, one) r = Range(zero, p, one) y = Add(r, r)
      n = ReduceMax<keepdims=0>(THEN) q = Add(n, other) s = Range(zero, q, one) z = Mul(s, s) }"""


@pytest.mark.parametrize(("then", "other", "reads"), [("x", 1, 1), ("x", 2, 2), ("w", 1, 2)])
def test_what_is_computed_again_in_the_same_way_is_read_once(then: str, other: int, reads: int):
    """Layers of a decoder each spell out how long the cache is."""
    text = AGAIN.replace("OTHER", str(other)).replace("THEN", then)
    model = _model(text)
    expected = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    program = fuseline.compile(model)
    assert program.stats["host_ops"] == reads
    for _ in range(2):
        feeds = {name: RNG.integers(0, 9, 6) for name in "xw"}
        wanted: Any = expected.run(None, feeds)
        for found, value in zip(program.run(feeds).values(), wanted, strict=True):
            np.testing.assert_array_equal(found, value)
