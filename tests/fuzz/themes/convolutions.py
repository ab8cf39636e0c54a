"""Networks of convolutions: patches, strides, many channels, pointwise and depthwise in turn, pools, skips."""

from __future__ import annotations

from tests.fuzz import layers
from tests.fuzz.evaluate import Rejected
from tests.fuzz.exclusions import exclude
from tests.fuzz.graph import Graph
from tests.fuzz.tensors import F16, F32, F64, Value
from tests.fuzz.theme import Theme

THEME = Theme("convolutions", sizes=(1, 2, 3, 5, 7, 8, 14, 16, 28, 33), parts=(1, 6))

IMAGES = (F32, F16, F64)

SPACES = ((1, 2048), (2, 1024), (3, 640), (4, 512), (7, 256), (7, 320), (8, 96), (14, 64), (14, 100), (16, 48),
          (28, 24), (28, 33), (32, 16), (56, 8), (56, 3), (64, 3), (65, 5))  # fmt: skip
"""Sizes of images, with channels that networks have there."""


@THEME.start(4)
def image(g: Graph) -> None:
    """Small ones of many channels, large ones of few."""
    size, channels = g.choose(SPACES)
    space = [layers.extent(g, size, size, max(size - 1, 1), size + 1, symbolic=0.25) for _ in range(2)]
    channels = g.choose([channels, channels, max(channels // 2, 1), channels + 1])
    g.new_input(
        g.choose([F32, F32, F32, F32, F32, F16, F64]), [layers.extent(g, 1, 1, 2, symbolic=0.3), channels, *space]
    )


@THEME.start(0.5)
def signal(g: Graph) -> None:
    """A line of samples."""
    g.new_input(F32, [layers.extent(g, 1, 2), g.choose([1, 2, 40, 80, 129]), layers.extent(g, 16, 50, 100, 257)])


@THEME.start(0.3)
def volume(g: Graph) -> None:
    """Of three dimensions."""
    g.new_input(F32, [1, g.choose([1, 3, 16]), *(layers.extent(g, 4, 7, 10) for _ in range(3))])


def _image(g: Graph) -> Value:
    return g.pick(IMAGES, lambda v: 3 <= v.rank <= 5 and v.fixed(1) and v.every(lambda a: a.size > 0))


def _then(g: Graph, y: Value) -> Value:
    """Often an activation."""
    return layers.activation(g, y) if g.chance(0.6) else y


def _pointwise(g: Graph, x: Value, made: int, **settings: object) -> Value:
    return layers.conv(g, x, made, [1] * (x.rank - 2), **settings)  # pyright: ignore[reportArgumentType]


@THEME.part(3)
def dense(g: Graph) -> None:
    """Of any window, 1x1 with a stride among them."""
    x = _image(g)
    space = x.rank - 2
    kernel = g.choose(
        [
            [1] * space,
            [1] * space,
            [3] * space,
            [3] * space,
            [5] * space,
            [g.choose([1, 2, 3, 7]) for _ in range(space)],
        ]
    )
    made = g.choose([1, 3, 8, 16, 17, 24, 32, 64, 100, 128, 256, 512])
    _then(g, layers.conv(g, x, made, kernel, **layers.window(g, x, kernel)))


@THEME.part(1)
def patches(g: Graph) -> None:
    """Windows that do not overlap, as wide as their stride."""
    x = _image(g)
    size = g.choose([2, 3, 4, 7, 8, 14, 16])
    exclude("window-beyond-image", not x.every(lambda a: min(a.shape[2:]) >= size))
    kernel = [size] * (x.rank - 2)
    y = layers.conv(g, x, g.choose([8, 24, 64, 96]), kernel, strides=kernel)
    if x.rank == 4 and y.fixed(2) and g.chance(0.5):
        rows = g.add("Reshape", y, g.ints(0, y.shape[1], -1))
        g.add("Transpose", rows, perm=[0, 2, 1])


@THEME.part(2)
def depthwise(g: Graph) -> None:
    """One filter, or two, per channel."""
    x = _image(g)
    kernel = [g.choose([3, 3, 5, 7, 2])] * (x.rank - 2)
    made = x.shape[1] * g.choose([1, 1, 1, 2])
    settings = layers.window(g, x, kernel)
    _then(g, layers.conv(g, x, made, kernel, x.shape[1], **settings))


@THEME.part(2)
def bottleneck(g: Graph) -> None:
    """Wider, by depth, narrower: with a skip where it fits."""
    x = _image(g)
    wide = min(x.shape[1] * g.choose([1, 2, 4, 6]), 2048)
    kernel = [g.choose([3, 3, 5])] * (x.rank - 2)
    half = [size // 2 for size in kernel]
    stride = g.choose([1, 1, 2])
    y = _then(g, _pointwise(g, x, wide))
    y = layers.conv(g, y, wide, kernel, wide, pads=half + half, strides=[stride] * len(kernel))
    y = _then(g, y)
    if g.chance(0.3):
        y = g.add("Mul", y, g.add("Sigmoid", _pointwise(g, g.add("GlobalAveragePool", y), wide)))
    y = _pointwise(g, y, g.choose([x.shape[1], x.shape[1], 16, 33]))
    if y.shapes == x.shapes:
        g.add("Add", x, y)


@THEME.part(1.5)
def residual(g: Graph) -> None:
    """Two convolutions and a skip, which is a 1x1 convolution with a stride at times."""
    x = _image(g)
    space, stride = x.rank - 2, g.choose([1, 1, 2])
    made = g.choose([x.shape[1], 16, 64, 128])
    pads = [1] * 2 * space
    y = _then(g, layers.conv(g, x, made, [3] * space, pads=pads, strides=[stride] * space))
    y = layers.conv(g, y, made, [3] * space, pads=pads) if g.chance(0.6) else _pointwise(g, y, made)
    skip = x if made == x.shape[1] and stride == 1 else _pointwise(g, x, made, strides=[stride] * space)
    _then(g, g.add("Add", *([y, skip] if g.chance(0.5) else [skip, y])))


@THEME.part(1)
def grouped(g: Graph) -> None:
    """A few groups of several channels."""
    x = _image(g)
    group = g.choose([d for d in (2, 3, 4, 8, 16, 32) if x.shape[1] % d == 0])
    kernel = [g.choose([1, 3])] * (x.rank - 2)
    settings = layers.window(g, x, kernel)
    _then(g, layers.conv(g, x, group * g.choose([1, 4, 8, 16]), kernel, group, **settings))


@THEME.part(1)
def pool(g: Graph) -> None:
    """Of overlapping windows, or over all."""
    x = _image(g)
    if g.chance(0.3):
        g.add(g.choose(["GlobalAveragePool", "GlobalMaxPool"]), x)
        return
    size = g.choose([2, 3, 3])
    exclude("window-beyond-image", not x.every(lambda a: min(a.shape[2:]) >= size))
    kernel, stride = [size] * (x.rank - 2), g.choose([1, 2, 2])
    pads = [size // 2 if g.chance(0.5) else 0] * 2 * len(kernel)
    g.add(g.choose(["MaxPool", "AveragePool"]), x, kernel_shape=kernel, strides=[stride] * len(kernel), pads=pads)


@THEME.part(0.7)
def head(g: Graph) -> None:
    """Pixels as one row, and a product."""
    x = _image(g)
    if not all(x.fixed(axis) for axis in range(1, x.rank)):
        raise Rejected("columns are not fixed")
    layers.matmul(g, g.add("Flatten", x, axis=1), g.choose([10, 16, 100]))


@THEME.part(0.7)
def up(g: Graph) -> None:
    """A transposed convolution with a stride."""
    x = _image(g)
    kernel, made = [g.choose([2, 3, 4])] * (x.rank - 2), g.choose([4, 16, 24])
    layers.require_work(g, x.arrays[0].size, made, kernel[0] ** len(kernel))
    weight = layers.weights(g, x.dtype, (x.shape[1], made, *kernel), x.shape[1])
    g.add("ConvTranspose", x, weight, strides=[2] * len(kernel))


@THEME.part(1)
def borders(g: Graph) -> None:
    """Cut off, of as much as a decoder or a causal convolution has too much; at times channels, too."""
    x = _image(g)
    axes = [axis for axis in range(2, x.rank) if g.chance(0.7)] or [2]
    axes += [1] if g.chance(0.2) else []
    low, high = ([g.choose([0, 1, 2, 5]) for _ in axes] for _ in range(2))
    if not x.every(lambda a: all(a.shape[n] > 7 for n in axes)):
        raise Rejected("too small to be cut")
    ends = [-end if end else 2**31 - 1 for end in high]
    y = g.add("Slice", x, g.ints(*low), g.ints(*ends), g.ints(*axes))
    if g.chance(0.5):
        layers.activation(g, y)


THEME.recipes("BatchNormalization", "Relu", "Add", "Mul", "Clip", "Concat", "Pad", "Transpose", weight=1.5)
