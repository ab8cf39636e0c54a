"""Reductions of neighbouring slices of one tensor, joined: one op with a loop more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.api import emit
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

REDUCTIONS = {
    "sum": "y{i} = ReduceSum <keepdims = {k}> (s{i}, axes)",
    "mean": "y{i} = ReduceMean <keepdims = {k}> (s{i}, axes)",
    "maximum": "y{i} = ReduceMax <keepdims = {k}> (s{i}, axes)",
    "norm": "y{i} = ReduceL2 <keepdims = {k}> (s{i}, axes)",
    "activated": "m{i} = ReduceSum <keepdims = {k}> (s{i}, axes)  y{i} = Sigmoid(m{i})",
}


def _model(how: str, cuts: Sequence[tuple[int, int]], shape: Sequence[int], axis: int, *, stacked: bool) -> Any:
    """`cuts`: where each slice along `axis` begins and ends. `stacked`: joined along a new dimension."""
    held: dict[str, Any] = {"axes": np.array([axis]), "along": np.array([axis]), "first": np.array([0])}
    lines = ""
    for i, (begin, end) in enumerate(cuts):
        held |= {f"b{i}": np.array([begin]), f"e{i}": np.array([end])}
        lines += f"s{i} = Slice(x, b{i}, e{i}, along)  {REDUCTIONS[how].format(i=i, k=int(not stacked))}  "
        lines += f"u{i} = Unsqueeze(y{i}, first)  " if stacked else f"u{i} = Identity(y{i})  "
    parts = ", ".join(f"u{i}" for i in range(len(cuts)))
    text = f"(float{list(shape)} x) => (y) {{ {lines} y = Concat <axis = {0 if stacked else axis}> ({parts}) }}"
    return onnx_model(text, {name: value for name, value in held.items() if f", {name}" in text}, opset=20)


def _generics(model: Any) -> int:
    """How many structured ops are left, those that combine elements."""
    module = emit(model, "cleanup", target="null", threads=1)
    return module.count("linalg.generic")


def _agrees(model: Any, shape: Sequence[int]) -> None:
    x = RNG.standard_normal(shape).astype(np.float32)
    found = fuseline.compile(model, threads=int(RNG.integers(1, 4))).run({"x": x})
    wanted = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x})
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6)


def _even(count: int, size: int, start: int = 0) -> list[tuple[int, int]]:
    return [(start + i * size, start + (i + 1) * size) for i in range(count)]


@pytest.mark.parametrize("how", REDUCTIONS)
@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize(("lead", "rest"), [((), (5,)), ((1,), (3, 4)), ((), ())])
def test_even_parts_are_one_op(lead: tuple[int, ...], rest: tuple[int, ...], stacked: bool, how: str):
    count, size, start = (int(RNG.integers(low, 8)) for low in (2, 2, 0))
    shape = (*lead, start + count * size + int(RNG.integers(0, 3)), *rest)
    model = _model(how, _even(count, size, start), shape, len(lead), stacked=stacked)
    one = _model(how, _even(1, size), (*lead, size, *rest), len(lead), stacked=stacked)
    assert _generics(model) == _generics(one)
    assert len(fuseline.compile(model, target="null", threads=1).record.dispatches) == 1
    _agrees(model, shape)


@pytest.mark.parametrize(
    "cuts",
    [[(0, 2), (2, 5), (5, 7)], [(2, 4), (0, 2), (4, 6)], [(0, 2), (3, 5), (6, 8)], [(0, 3), (2, 5)]],
    ids=["of other sizes", "in another order", "with gaps", "on top of each other"],
)
@pytest.mark.parametrize("how", REDUCTIONS)
def test_other_parts_stay(cuts: list[tuple[int, int]], how: str):
    model = _model(how, cuts, (9, 5), 0, stacked=False)
    assert _generics(model) > _generics(_model(how, _even(1, 2), (2, 5), 0, stacked=False))
    _agrees(model, (9, 5))


SUMS = """(float[6, 4] x) => (y, z) {
    s, t = Split <num_outputs = 2> (x)  a = ReduceSum(s, axes)  b = ReduceSum(t, axes)
    y = Concat <axis = 0> (a, b)  z = Relu(a) }"""
PLACES = """(float[6, 4] x) => (y) { s, t = Split <num_outputs = 2> (x)  a = ArgMax <axis = 0> (s)
    b = ArgMax <axis = 0> (t)  y = Concat <axis = 0> (a, b) }"""


@pytest.mark.parametrize(("text", "count"), [(SUMS, 3), (PLACES, 2)])
def test_parts_that_others_read_stay_and_what_counts_its_loops_does(text: str, count: int):
    model = onnx_model(text, {"axes": np.array([0])} if text is SUMS else {}, opset=20)
    assert _generics(model) == count
    _agrees(model, (6, 4))
