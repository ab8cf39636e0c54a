"""Rows of a product that are parts of several tensors: no part of one lies where the loops of all would be one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.proved import ProvedProgram

Image = tuple[int, int, int, int]

PARTS = {
    "reduced": "p = ReduceMean <keepdims = 0> (x, axes)",
    "activated": "q = ReduceMean <keepdims = 0> (x, axes)  p = Sigmoid(q)",
    "given": "m = ReduceMax <keepdims = 0> (x, axes)  p = Relu(m)",
}
AFTER = {"a convolution": "y = Conv(c, w)", "an activation, too": "d = Conv(c, w)  y = Relu(d)"}


def _model(image: Image, above: int, made: int, part: str, after: str, *, first: bool) -> Any:
    """Rows of an argument above (or below) rows that are computed, and what a 1x1 convolution makes of both."""
    batch, channels, height, width = image
    text = (
        f"(float[{batch}, {channels}, {height}, 6, {width}] x, float[{batch}, {channels}, {above}, {width}] z) => (y)"
    )
    text += f" {{ {PARTS[part]}  c = Concat <axis = 2> ({'z, p' if first else 'p, z'})  {AFTER[after]} }}"
    weights = {"axes": np.array([3]), "w": RNG.standard_normal((made, channels, 1, 1)).astype(np.float32)}
    return onnx_model(text, weights, opset=18)


@pytest.mark.parametrize("image", [(1, 4, 8, 2), (2, 4, 8, 5), (1, 16, 3, 7), (2, 3, 11, 1), (1, 8, 5, 16)])
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("first", [False, True])
def test_rows_of_an_argument_beside_rows_that_are_computed(image: Image, part: str, first: bool):
    """Coordinate attention (Hou et al. 2021, arXiv:2103.02907) joins the means along either side of an image so."""
    after = list(AFTER)[int(RNG.integers(len(AFTER)))]
    model = _model(image, int(RNG.integers(1, 5)), int(RNG.integers(2, 20)), part, after, first=first)
    feeds = {
        value.name: RNG.standard_normal([one.dim_value for one in value.type.tensor_type.shape.dim]).astype(np.float32)
        for value in model.graph.input
    }
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run(feeds).values()
    for found in (ProvedProgram(model).run(feeds)[0], *fuseline.compile(model, threads=3).run(feeds).values()):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
