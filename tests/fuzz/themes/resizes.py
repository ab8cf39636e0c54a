"""Images of other sizes among convolutions, products, pads and quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz import layers
from tests.fuzz.exclusions import exclude
from tests.fuzz.graph import Graph
from tests.fuzz.tensors import F32, U8, Value
from tests.fuzz.theme import Theme

THEME = Theme("resizes", sizes=(1, 2, 3, 4, 6, 8, 14, 16, 20, 33), parts=(1, 6))

COORDINATES = {
    "half_pixel": 11,
    "asymmetric": 11,
    "align_corners": 11,
    "pytorch_half_pixel": 11,
    "half_pixel_symmetric": 19,
}
"""Ways to count pixels, and since when there are."""

FACTORS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.0, 2.5, 3.0, 4.0)


@THEME.start()
def pixels(g: Graph) -> None:
    """An image of f32."""
    g.new_input(F32, _dims(g))


@THEME.start(0.3)
def bytes_(g: Graph) -> None:
    """An image in 8 bits, as floats."""
    x = g.new_input(U8, _dims(g))
    g.add("DequantizeLinear", x, layers.scalar(g, 0.02, F32), layers.scalar(g, g.choose([0, 128]), U8))


def _dims(g: Graph) -> list[int | str]:
    space = [layers.extent(g, 1, 2, 4, 5, 7, 8, 12, 16, 20, 28, 33) for _ in range(2)]
    return [layers.extent(g, 1, 1, 1, 2, symbolic=0.2), g.choose([1, 2, 3, 4, 8, 16, 17, 24, 32]), *space]


@THEME.part(4)
def resize(g: Graph) -> None:
    """Every mode, way to count pixels, and way to say the size."""
    x = layers.image(g)
    settings = _settings(g)
    factors = [_factor(g, x, axis) for axis in (2, 3)]
    axes = g.opset >= 18 and g.chance(0.3)
    lead = [] if axes else [1, 1]
    if axes:
        settings["axes"] = [2, 3]
    if x.static and g.chance(0.4):
        sizes = [max(1, int(s * f)) for s, f in zip(x.shape[2:], factors, strict=True)]
        if g.chance(0.3):
            sizes = [g.number(1, 2 * size + 3) for size in x.shape[2:]]
        g.add("Resize", x, None, None, g.ints(*([] if axes else x.shape[:2]), *sizes), **settings)
    else:
        g.add("Resize", x, None, g.constant(np.array([*lead, *factors], np.float32)), **settings)


def _settings(g: Graph) -> dict[str, Any]:
    mode = g.choose(["nearest", "linear", "linear", "cubic"])
    known = [name for name, since in COORDINATES.items() if since <= g.opset]
    found: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": g.choose(known)}
    if mode == "nearest":
        found["nearest_mode"] = g.choose(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        found |= {"cubic_coeff_a": g.choose([-0.75, -0.5])}
        if g.chance(0.3):
            found["exclude_outside"] = 1
    if g.opset >= 18 and mode != "nearest" and g.chance(0.15):
        found["antialias"] = 1
    return found


def _factor(g: Graph, x: Value, axis: int) -> float:
    """One that gives a whole number of pixels (the exclusion `resize-to-a-part-of-a-pixel`)."""
    return g.choose([f for f in FACTORS if all(shape[axis] * f % 1 == 0 for shape in x.shapes)])


@THEME.part(1.5)
def convolution(g: Graph) -> None:
    """Of 1x1, 3x3 or by depth, in front of a resize or behind one."""
    x = layers.image(g)
    kernel = g.choose([[1, 1], [3, 3], [3, 3], [2, 2]])
    group = x.shape[1] if g.chance(0.25) else 1
    made = group if group > 1 else g.choose([1, 3, 8, 16, 20, 32])
    y = layers.conv(g, x, made, kernel, group, **layers.window(g, x, kernel))
    if g.chance(0.5):
        layers.activation(g, y)


@THEME.part()
def branch(g: Graph) -> None:
    """Sum, product or concatenation of two images of one size, as pyramids have them."""
    x = layers.image(g)
    other = g.pick([F32], lambda v: v is not x and v.shapes == x.shapes)
    kind = g.choose(["Add", "Mul", "Concat", "Max"])
    g.add(kind, x, other, **({"axis": g.choose([1, 1, -1, 2])} if kind == "Concat" else {}))


@THEME.part(0.7)
def gate(g: Graph) -> None:
    """Scaled by what pooling made of the image."""
    x = layers.image(g)
    g.add("Mul", x, g.add("Sigmoid", g.add("GlobalAveragePool", x)))


@THEME.part(0.7)
def pool(g: Graph) -> None:
    """In blocks."""
    x = layers.image(g)
    exclude("window-beyond-image", not x.every(lambda a: min(a.shape[2:]) >= 2))
    g.add(g.choose(["MaxPool", "AveragePool"]), x, kernel_shape=[2, 2], strides=g.choose([[2, 2], [1, 1]]))


@THEME.part(0.8)
def eight_bits(g: Graph) -> None:
    """Quantised and back."""
    layers.through_8_bits(g, layers.image(g))


@THEME.part(0.5)
def projection(g: Graph) -> None:
    """A product over the channels, as in a transformer: turned, multiplied, turned back."""
    x = layers.image(g)
    y = layers.matmul(g, g.add("Transpose", x, perm=[0, 2, 3, 1]), g.choose([1, 5, 16, 24]))
    g.add("Transpose", y, perm=[0, 3, 1, 2])


THEME.recipes("Pad", "Transpose", "DepthToSpace", "SpaceToDepth", "Slice", "Concat", weight=1.5)
THEME.recipes("Relu", "Sigmoid", "Add", "Mul", "Sub", "Clip", "HardSwish", "Round", "ReduceMean", weight=1.5)
