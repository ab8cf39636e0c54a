"""Images of other sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.graph import Graph
from tests.fuzz.recipe import recipe
from tests.fuzz.tensors import F32, Value

COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")


def _image(g: Graph) -> Value:
    if g.chance(0.5):
        return g.pick([F32], lambda v: v.rank in (3, 4) and min(min(s) for s in v.shapes) > 0, fresh=0)
    return g.new_input(F32, [1, g.number(1, 4), g.number(2, 7), g.choose([3, 4, 6])])


@recipe("Resize", since=10, weight=0.7)
def resize(g: Graph, op: str) -> None:
    """Nearest, linear and cubic, by scales or sizes, every way to count pixels that both peers know."""
    x = _image(g)
    mode = g.choose(["nearest", "linear", *(["cubic"] if g.opset >= 11 and x.rank == 4 else [])])
    scales = [1.0, 1.0, *(_scale(g, x, axis) for axis in range(2, x.rank))]
    if g.opset < 11:
        g.add(op, x, g.constant(np.array(scales, np.float32)), mode=mode)
        return
    settings: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": g.choose(COORDINATES)}
    if mode == "nearest":
        settings["nearest_mode"] = g.choose(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic" and g.chance(0.5):
        settings["cubic_coeff_a"] = -0.5
    roi = None if g.opset >= 13 else g.constant(np.zeros(0, np.float32))
    if x.static and g.chance(0.4):
        sizes = [max(1, int(s * f)) for s, f in zip(x.shape, scales, strict=True)]
        g.add(op, x, roi, None if g.opset >= 13 else g.constant(np.zeros(0, np.float32)), g.ints(*sizes), **settings)
    else:
        g.add(op, x, roi, g.constant(np.array(scales, np.float32)), **settings)


def _scale(g: Graph, x: Value, axis: int) -> float:
    """One that gives a whole number of pixels (the exclusion `resize-to-a-part-of-a-pixel`)."""
    return g.choose([f for f in (0.5, 1.0, 2.0, 1.5, 3.0) if all(shape[axis] * f % 1 == 0 for shape in x.shapes)])


@recipe("Upsample", since=9, until=9, weight=0.7)
def upsample(g: Graph, op: str) -> None:
    """The operator that Resize replaced."""
    x = _image(g)
    scales = [1.0, 1.0, *(float(g.choose([1, 2, 3])) for _ in range(x.rank - 2))]
    g.add(op, x, g.constant(np.array(scales, np.float32)), mode=g.choose(["nearest", "linear"]))


@recipe("GridSample", since=16, weight=0.4)
def grid_sample(g: Graph, op: str) -> None:
    """Places inside the image and a little outside."""
    x = g.new_input(F32, [g.number(1, 2), g.number(1, 3), g.number(2, 6), g.number(2, 6)])
    grid = g.constant(g.rng.uniform(-1.3, 1.3, (x.shape[0], g.number(1, 4), g.number(1, 4), 2)).astype(np.float32))
    linear = "bilinear" if g.opset < 20 else "linear"
    padding = g.choose(["zeros", "border", "reflection"])
    g.add(op, x, grid, mode=g.choose([linear, "nearest"]), padding_mode=padding, align_corners=g.number(0, 1))


@recipe("AffineGrid", since=20, weight=0.2)
def affine_grid(g: Graph, op: str) -> None:
    """Two dimensions."""
    count = g.number(1, 2)
    theta = g.new_input(F32, [count, 2, 3])
    g.add(op, theta, g.ints(count, 1, g.number(2, 5), g.number(2, 5)), align_corners=g.number(0, 1))
