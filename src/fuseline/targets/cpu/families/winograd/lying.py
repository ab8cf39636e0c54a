"""How the tensors lie that the pixels of an image are computed from: along which loop vectors of them are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir.affine import AffineMap

from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.segment_boundaries import stored_strides
from fuseline.targets.cpu.families.contraction.access import is_binding
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops


@dataclass(frozen=True, slots=True)
class ImageLying:
    """Vectors run along window axis `turned` and are transposed in registers, or along the channels (None); `gathered`
    tensors have the elements of such a vector in places of their own."""

    turned: int | None
    gathered: int


ALONG_CHANNELS = ImageLying(None, 0)
"""Channels side by side."""


def image_lying(loops: ContractionLoops, pixels: Sequence[int], channel: int) -> ImageLying:
    """The axis along which the fewest tensors are gathered: the channels, or the last of the `pixels` where that is
    less."""
    best = ImageLying(None, _gathered(loops, channel))
    for number, pixel in enumerate(pixels):
        count = _gathered(loops, pixel)
        if count < best.gathered or (best.turned is not None and count == best.gathered):
            best = ImageLying(number, count)
    return best


def _gathered(loops: ContractionLoops, loop: int) -> int:
    """The stored tensors that a step of `loop` neither stays in place in nor goes to the next element of."""
    operand = loops.lhs
    sizes = loops.view.shapes.dims(operand.value)
    axis = next(place for place, expr in enumerate(operand.map.results) if loop in dims_of(expr))
    whole = AffineMap.identity(len(sizes))
    strides = stored_strides(loops.view.shapes, operand.value, whole, axis, sizes, is_binding)
    return sum(stride not in (0, 1) for stride in strides)
