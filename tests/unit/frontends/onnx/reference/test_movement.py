"""Movement of elements by the reference evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.unit.frontends.onnx.reference.evaluations import F32, RNG, agree, normal, run


def test_elements_at_places() -> None:
    x, at = normal(3, 4), RNG.integers(-4, 4, (2, 5))
    agree("GatherElements", [x, at], {"axis": 1}, wanted=[np.take_along_axis(x[:2], at % 4, 1)])
    rows = RNG.integers(0, 3, (5, 4))
    agree("GatherElements", [x, rows], wanted=[np.take_along_axis(x, rows, 0)])


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_updates_at_places(reduction: str) -> None:
    x, at = normal(4, 5), np.stack([RNG.permutation(5)[:3] for _ in range(4)])
    updates = normal(4, 3)
    agree("ScatterElements", [x, at, updates], {"axis": 1, "reduction": reduction})
    positions = np.stack([RNG.permutation(4)[:3]], -1)
    agree("ScatterND", [x, positions, normal(3, 5)], {"reduction": reduction})
    if reduction == "none":
        agree("Scatter", [x, at, updates], {"axis": 1}, opset=9)


@pytest.mark.parametrize(
    "given", [{}, {"strides": [2, 1], "pads": [1, 0, 1, 2]}, {"dilations": [2, 1], "pads": [1, 1, 0, 1]}]
)
def test_columns_summed_up(given: Mapping[str, Any]) -> None:
    strides, dilations, pads = given.get("strides", [1, 1]), given.get("dilations", [1, 1]), given.get("pads", [0] * 4)
    spans = [pads[i] + pads[2 + i] + (5, 6)[i] - ((2, 3)[i] - 1) * dilations[i] - 1 for i in range(2)]
    count = int(np.prod([span // stride + 1 for span, stride in zip(spans, strides, strict=True)]))
    agree("Col2Im", [normal(2, 12, count), np.array([5, 6]), np.array([2, 3])], given)


def test_where_something_is() -> None:
    agree("NonZero", [RNG.integers(0, 2, (3, 4))])
    agree("NonZero", [np.array(3.0)], wanted=[np.array([[0]])])
    agree("NonZero", [np.array(0.0)], wanted=[np.zeros((1, 0), np.int64)])


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_ones_at_an_index(axis: int) -> None:
    at, values = np.array([[1, -1, 5], [0, 3, -5]]), np.array([0.5, 2], F32)
    agree("OneHot", [at, np.array(4), values], {"axis": axis})
    agree("OneHot", [at, np.array([4]), values], {"axis": axis})


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_elements_around_the_edges(mode: str) -> None:
    x = normal(4, 5)
    agree("Pad", [x, np.array([1, -2, 2, 1])], {"mode": mode}, opset=18)
    agree("Pad", [x, np.array([2, 1]), np.array(0.5, F32), np.array([-1])], {"mode": mode}, opset=18)
    agree(
        "Pad",
        [x],
        {"mode": mode, "pads": [1, 0, 0, 2]},
        opset=2,
        wanted=None if mode != "constant" else [np.pad(x, [(1, 0), (0, 2)])],
    )


@pytest.mark.parametrize(("start", "end"), [(0, None), (1, 9), (-9, -1), (2, 1), (-2, None)])
def test_some_sizes(start: int, end: int | None) -> None:
    attributes = {"start": start, **({} if end is None else {"end": end})}
    agree("Shape", [normal(2, 3, 4)], attributes, wanted=[np.array((2, 3, 4)[start:end], np.int64)])


@pytest.mark.parametrize(
    "bounds", [(1, 4, 1), (-99, 99, 2), (99, -99, -1), (4, 0, -2), (-1, -99, -3), (3, 3, 1), (9, 0, 1)]
)
def test_slices(bounds: tuple[int, int, int]) -> None:
    x, (start, end, step) = normal(2, 6), (np.array([bound]) for bound in bounds)
    agree("Slice", [x, start, end, np.array([-1]), step])
    agree("Slice", [normal(0, 3), start, end, np.array([0]), step])
    agree("Slice", [x, np.array([1]), np.array([2])])


def test_units_in_any_order() -> None:
    x = normal(1, 3, 1)
    agree("Squeeze", [x])
    agree("Squeeze", [x, np.array([-1, 0])])
    agree("Unsqueeze", [x, np.array([-1, 0])])


def test_parts_in_a_sequence() -> None:
    x = normal(5, 2)
    assert [part.tolist() for part in run("SplitToSequence", [x, np.array([2, 3])])[0]] == [
        x[:2].tolist(),
        x[2:].tolist(),
    ]
    assert len(run("SplitToSequence", [x])[0]) == 5
    for sizes in (np.array([2, 2]), np.array([6, -1]), np.array(0)):
        with pytest.raises(ValueError, match="parts of"):
            run("SplitToSequence", [x, sizes])


@pytest.mark.parametrize("ordered", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_distinct_elements(ordered: int, axis: int | None) -> None:
    x = RNG.integers(0, 3, (4, 4)).astype(F32)
    attributes = {"sorted": ordered, **({} if axis is None else {"axis": axis})}
    agree("Unique", [x], attributes, outputs=4)
    assert run("Unique", [np.array(["b", "a", "b"], object)], {"sorted": ordered})[0].tolist() == (
        ["a", "b"] if ordered else ["b", "a"]
    )
