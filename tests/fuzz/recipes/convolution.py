"""Windows over images of one, two and three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.exclusions import exclude
from tests.fuzz.graph import Graph
from tests.fuzz.recipe import recipe
from tests.fuzz.tensors import F16, F32, F64, Value

IMAGES = (F32, F32, F32, F64, F16)


def image(g: Graph) -> Value:
    """A value of three to five dimensions whose channels are fixed; a new input at times."""
    if g.chance(0.35):
        space = [g.choose([1, 3, 5, 6, 8, 9, 12, *g.setting.symbols]) for _ in range(g.choose([1, 2, 2, 2, 2, 3]))]
        return g.new_input(
            g.choose(IMAGES), [g.choose([1, 1, 2, *g.setting.symbols]), g.choose([1, 2, 3, 4, 6, 8, 16]), *space]
        )
    return g.pick(IMAGES, lambda v: 3 <= v.rank <= 5 and v.fixed(1) and v.shape[1] > 0, fresh=0)


def window(g: Graph, x: Value, *, dilations: bool = True) -> dict[str, Any]:
    """Random sizes, strides, pads (or automatic ones) and dilations."""
    space = x.rank - 2
    kernel = [g.choose([1, 2, 3, 3, 3, 5]) for _ in range(space)]
    found: dict[str, Any] = {"kernel_shape": kernel}
    if g.chance(0.5):
        found["strides"] = [g.choose([1, 2, 3]) for _ in range(space)]
    if dilations and g.chance(0.25):
        found["dilations"] = [g.choose([1, 2]) for _ in range(space)]
    if g.chance(0.15) and "dilations" not in found:
        found["auto_pad"] = g.choose(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif g.chance(0.6):
        found["pads"] = [g.number(0, max((size - 1), 0)) if g.chance(0.5) else size // 2 for size in kernel * 2]
    exclude("window-beyond-image", exceeds(x, found))
    exclude("automatic-pads-of-sparse-windows", found.get("auto_pad", "VALID") != "VALID" and _skips(found))
    return found


def _skips(settings: dict[str, Any]) -> bool:
    """Whether windows leave out two or more places between them."""
    return any(
        size + 1 < stride for size, stride in zip(settings["kernel_shape"], settings.get("strides", ()), strict=False)
    )


def exceeds(x: Value, settings: dict[str, Any]) -> bool:
    """Whether a window is larger than the padded image."""
    if settings.get("auto_pad", "VALID") != "VALID":
        return False
    kernel = settings["kernel_shape"]
    pads, taps = settings.get("pads", [0] * 2 * len(kernel)), settings.get("dilations", [1] * len(kernel))
    strides = settings.get("strides", [1] * len(kernel))
    sizes = [(size, axis) for shape in x.shapes for axis, size in enumerate(shape[2:]) if size or strides[axis] > 1]
    return any(
        size + pads[axis] + pads[axis + len(kernel)] < (kernel[axis] - 1) * taps[axis] + 1 for size, axis in sizes
    )


@recipe("Conv", weight=3)
def conv(g: Graph, op: str) -> None:
    """Dense, grouped and depthwise; the filter a weight, rarely a value."""
    x = image(g)
    channels = x.shape[1]
    group = g.choose([1, 1, 1, channels, *[d for d in (2, 3, 4) if channels % d == 0]])
    made = group * g.choose([1, 1, 2, 3, 4]) if group > 1 else g.choose([1, 2, 3, 4, 8, 16])
    settings = window(g, x)
    filters = _filter(g, x, (made, channels // group, *settings["kernel_shape"]))
    bias = [g.constant(g.contents(x.dtype, (made,)))] if g.chance(0.5) else []
    g.add(op, x, filters, *bias, group=group, **settings)


def _filter(g: Graph, x: Value, shape: tuple[int, ...]) -> Value:
    if g.chance(0.08):
        return g.new_input(x.dtype, list(shape))
    return g.constant((g.contents(x.dtype, shape).astype(np.float64) * 0.4).astype(x.dtype))


@recipe("ConvTranspose", weight=0.8)
def conv_transpose(g: Graph, op: str) -> None:
    """With output padding at times."""
    x = image(g)
    channels = x.shape[1]
    group = g.choose([1, 1, *[d for d in (2, 3, channels) if channels % d == 0]])
    settings = window(g, x)
    if "strides" in settings and "auto_pad" not in settings and g.chance(0.3):
        settings["output_padding"] = [g.number(0, stride - 1) for stride in settings["strides"]]
    sparse = any(k < s for k, s in zip(settings["kernel_shape"], settings.get("strides", []), strict=False))
    exclude("automatic-pads-of-a-sparse-transpose", "auto_pad" in settings and sparse)
    made = g.choose([1, 2, 3, 4])
    bias = [g.constant(g.contents(x.dtype, (made * group,)))] if g.chance(0.4) else []
    g.add(op, x, _filter(g, x, (channels, made, *settings["kernel_shape"])), *bias, group=group, **settings)


@recipe("MaxPool")
def max_pool(g: Graph, op: str) -> None:
    """Ceil mode and dilations from opset 10 on; the indices at times."""
    x = image(g)
    settings = window(g, x, dilations=g.opset >= 10)
    if g.opset >= 10 and g.chance(0.25):
        settings["ceil_mode"] = 1
    exclude("window-of-padding", _has_wide_pads(settings))
    g.add_all(op, x, outputs=2 if g.chance(0.1) else 1, **settings)


@recipe("AveragePool")
def average_pool(g: Graph, op: str) -> None:
    """The padding counted or not."""
    x = image(g)
    settings = window(g, x, dilations=g.opset >= 19)
    settings["count_include_pad"] = g.number(0, 1)
    if g.opset >= 10 and g.chance(0.25):
        settings["ceil_mode"] = 1
    exclude("window-of-padding", _has_wide_pads(settings))
    g.add(op, x, **settings)


@recipe("LpPool", since=11, weight=0.3)
def lp_pool(g: Graph, op: str) -> None:
    """Of order 1 to 3."""
    x = image(g)
    settings = window(g, x, dilations=g.opset >= 18)
    exclude("window-of-padding", _has_wide_pads(settings))
    g.add(op, x, p=g.number(1, 3), **settings)


def _has_wide_pads(settings: dict[str, Any]) -> bool:
    return any(p >= k for p, k in zip(settings.get("pads", ()), settings["kernel_shape"] * 2, strict=False))


@recipe("GlobalAveragePool", "GlobalMaxPool", weight=0.5)
def global_pool(g: Graph, op: str) -> None:
    """Over all pixels."""
    g.add(op, image(g))


@recipe("Col2Im", since=18, weight=0.1)
def col2im(g: Graph, op: str) -> None:
    """Columns back to an image."""
    x = g.new_input(F32, [g.number(1, 2), 4 * g.number(1, 3), 12])
    g.add(op, x, g.ints(4, 5), g.ints(2, 2), strides=[1, 1])
