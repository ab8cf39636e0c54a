"""The windows of pooling and convolution, gathered whole: which element of the image stands at which place of which
window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Sliding:
    """One spatial axis: `places[o, k]` is where place k of window o stands in the image, `inside` whether there is an
    element, and `padded` whether there is one or padding: a last window of `ceil_mode` may hang over both."""

    places: Array
    inside: Array
    padded: Array


def sliding(sizes: Sequence[int], options: Mapping[str, Any], kernel: Sequence[int]) -> list[Sliding]:
    """The windows over an image of `sizes`, one entry per axis; `options` are the node's strides, pads, dilations,
    auto_pad and ceil_mode."""
    rank = len(sizes)
    strides, dilations = numbers(options.get("strides"), [1] * rank), numbers(options.get("dilations"), [1] * rank)
    pads, auto = numbers(options.get("pads"), [0] * 2 * rank), options.get("auto_pad") or "NOTSET"
    out: list[Sliding] = []
    for axis, size in enumerate(sizes):
        span = (kernel[axis] - 1) * dilations[axis] + 1
        begin, end = (pads[axis], pads[rank + axis]) if auto == "NOTSET" else automatic(auto, size, span, strides[axis])
        count = _count(size, span, strides[axis], (begin, end), bool(options.get("ceil_mode")) and auto == "NOTSET")
        places = np.arange(count)[:, None] * strides[axis] + np.arange(kernel[axis]) * dilations[axis] - begin
        out.append(Sliding(places, (places >= 0) & (places < size), places < size + end))
    return out


def numbers(given: Any, default: list[int]) -> list[int]:
    """A list attribute, or what it is where it is left out."""
    return [int(value) for value in given] if given is not None and len(given) else default


def automatic(auto: str, size: int, span: int, stride: int) -> tuple[int, int]:
    """The pads that `auto_pad` stands for."""
    if auto == "VALID":
        return 0, 0
    whole = max((-(-size // stride) - 1) * stride + span - size, 0)
    return (whole // 2, whole - whole // 2) if auto == "SAME_UPPER" else (whole - whole // 2, whole // 2)


def _count(size: int, span: int, stride: int, pads: tuple[int, int], up: bool) -> int:
    """How many windows: with `ceil_mode` one more for a rest, unless it would start behind the image."""
    exact = (size + sum(pads) - span) / stride
    count = (ceil(exact) if up else int(np.floor(exact))) + 1
    return count - 1 if up and (count - 1) * stride >= size + pads[0] else count


def gathered(x: Array, axes: Sequence[Sliding], fill: Any) -> Array:
    """`x` [batch, channels, *sizes] as [batch, channels, *windows, places], `fill` where a window hangs over the
    edge."""
    out = x
    for i, axis in enumerate(axes):
        at = 2 + 2 * i
        taken = np.take(out, np.clip(axis.places, 0, out.shape[at] - 1).reshape(-1), axis=at)
        taken = taken.reshape(*out.shape[:at], *axis.places.shape, *out.shape[at + 1 :])
        inside = axis.inside.reshape(*axis.inside.shape, *[1] * (out.ndim - at - 1))
        out = np.where(inside, taken, np.asarray(fill, x.dtype))
    return _places_last(out, len(axes))


def _places_last(x: Array, rank: int) -> Array:
    order = [0, 1, *(2 + 2 * i for i in range(rank)), *(3 + 2 * i for i in range(rank))]
    moved = x.transpose(order)
    return moved.reshape(*moved.shape[: 2 + rank], -1)
