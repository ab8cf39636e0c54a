"""Images that become larger again, and meet what was kept of that size: U-Nets, generators, heads of segmentation."""

from __future__ import annotations

import numpy as np

from tests.fuzz import layers
from tests.fuzz.evaluate import Rejected
from tests.fuzz.exclusions import exclude
from tests.fuzz.graph import Graph
from tests.fuzz.tensors import F16, F32, Value
from tests.fuzz.theme import Theme

THEME = Theme("decoders", sizes=(1, 2, 3, 5, 8, 14, 16, 33), parts=(2, 7))

CHANNELS = (3, 5, 8, 16, 17, 24, 32, 64)

WINDOWS = (
    (2, 2),
    (2, 2),
    (3, 2),
    (3, 2),
    (3, 2),
    (4, 2),
    (4, 2),
    (5, 2),
    (6, 3),
    (3, 3),
    (4, 3),
    (8, 4),
    (2, 3),
    (3, 1),
)
"""Kernels and strides of transposed convolutions."""


@THEME.start(3)
def levels(g: Graph) -> None:
    """An image, and one of twice its size or more."""
    dtype = g.choose([F32, F32, F32, F32, F16])
    batch, fixed = layers.extent(g, 1, 1, 2, symbolic=0.2), g.chance(0.8)
    space = [layers.extent(g, 1, 2, 4, 5, 7, 8, 12, 16, symbolic=0 if fixed else 1) for _ in range(2)]
    g.new_input(dtype, [batch, g.choose(CHANNELS), *space])
    for factor in g.choose([(2,), (2,), (2, 4), (3,), ()]):
        if fixed:
            g.new_input(dtype, [batch, g.choose(CHANNELS), *(size * factor for size in space if isinstance(size, int))])


@THEME.start(0.5)
def signal(g: Graph) -> None:
    """A line of samples."""
    size = g.choose([5, 16, 33])
    g.new_input(F32, [1, g.choose(CHANNELS), size])
    g.new_input(F32, [1, g.choose(CHANNELS), 2 * size])


def _image(g: Graph, most: int = 64) -> Value:
    def fits(v: Value) -> bool:
        return 3 <= v.rank <= 4 and v.fixed(1) and v.every(lambda a: 0 < a.size and max(a.shape[2:]) <= most)

    return g.pick((F32, F16), fits)


def _require_plane(x: Value) -> None:
    if x.rank != 4:
        raise Rejected("of an image alone")


def _then(g: Graph, y: Value) -> Value:
    """A norm and an activation at times."""
    if g.chance(0.2) and y.every(lambda a: min(a.shape[2:]) > 1):
        scale, shift = layers.vector(g, y.dtype, y.shape[1]), layers.vector(g, y.dtype, y.shape[1])
        y = g.add("InstanceNormalization", y, scale, shift)
    return layers.activation(g, y) if g.chance(0.6) else y


@THEME.part(4)
def transposed(g: Graph) -> None:
    """A transposed convolution, often of exactly the stride's multiple in size."""
    x = _image(g, most=32)
    kernel, stride = g.choose(WINDOWS)
    space, made = x.rank - 2, g.choose(CHANNELS)
    low = max(kernel - stride + 1, 0) // 2 if g.chance(0.7) else g.number(0, kernel // 2)
    extra = min(max(2 * low + stride - kernel, 0), stride - 1) if g.chance(0.8) else 0
    exclude("window-beyond-image", not x.every(lambda a: min(a.shape[2:]) > 2 * low))
    layers.require_work(g, x.shape[1], made, kernel**space, 32**space)
    w = layers.weights(
        g, x.dtype, (x.shape[1], made, *[kernel] * space), x.shape[1] * max(kernel // stride, 1) ** space
    )
    bias = [layers.vector(g, x.dtype, made)] if g.chance(0.6) else []
    settings = {"strides": [stride] * space, "pads": [low] * 2 * space, "output_padding": [extra] * space}
    _then(g, g.add("ConvTranspose", x, w, *bias, **settings))


@THEME.part()
def shuffled(g: Graph) -> None:
    """Pixels of the channels of a convolution."""
    x = _image(g, most=32)
    _require_plane(x)
    made = 4 * g.choose([2, 4, 8, 16])
    y = layers.conv(g, x, made, [3, 3], pads=[1] * 4)
    _then(g, g.add("DepthToSpace", y, blocksize=2, mode=g.choose(["DCR", "CRD"])))


@THEME.part()
def resized(g: Graph) -> None:
    """Twice as large, before a convolution mostly."""
    x = _image(g, most=32)
    _require_plane(x)
    mode = g.choose(["nearest", "linear"])
    settings = {"mode": mode, "coordinate_transformation_mode": "asymmetric" if mode == "nearest" else "half_pixel"}
    factors = g.constant(np.array([1, 1, 2, 2], np.float32))
    y = g.add("Resize", x, None, factors, **settings)
    if g.chance(0.7):
        _then(g, layers.conv(g, y, g.choose(CHANNELS), [3, 3], pads=[1] * 4))


@THEME.part(3)
def convolution(g: Graph) -> None:
    """Of 1x1 or 3x3; with a stride at times."""
    x = _image(g)
    size, space = g.choose([1, 1, 3, 3, 3]), x.rank - 2
    stride = g.choose([1, 1, 1, 2])
    _then(
        g, layers.conv(g, x, g.choose(CHANNELS), [size] * space, pads=[size // 2] * 2 * space, strides=[stride] * space)
    )


@THEME.part(4)
def skip(g: Graph) -> None:
    """What is of one size meets: as a sum where the channels are made as many, or side by side."""
    x = _image(g)

    def same(v: Value) -> bool:
        pairs = zip(v.shapes, x.shapes, strict=True)
        return v is not x and v.rank == x.rank and all(a[:1] + a[2:] == b[:1] + b[2:] for a, b in pairs)

    other = g.pick((x.dtype,), lambda v: v.fixed(1) and same(v))
    if g.chance(0.6) or other.shape[1] != x.shape[1]:
        other = layers.conv(g, other, g.choose([x.shape[1], x.shape[1], 8]), [1] * (x.rank - 2))
        other = layers.activation(g, other) if g.chance(0.5) else other
    both = [x, other] if g.chance(0.5) else [other, x]
    if other.shape[1] == x.shape[1] and g.chance(0.7):
        y = g.add(g.choose(["Add", "Add", "Mul"]), *both)
    else:
        y = g.add("Concat", *both, axis=1)
    if g.chance(0.5):
        layers.activation(g, y)
