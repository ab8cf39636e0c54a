"""The axes of an image that a window slides along: the loop of the result and the one of the reduction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fuseline.analysis.operand_access import Bound, LinearAccess
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.families.contraction.axes import Axis, estimated
from fuseline.targets.target import Refusal

UNROLLED_WINDOW = 9
"""A window wider than this along the line is a loop, and its pixels share no columns."""


@dataclass(frozen=True, slots=True)
class SlidingAxes:
    """How a window goes over the image: `pixel` is the tiled axis of the result, `across` the reduction axis that
    slides along it (None: none does), `line` the axis of the result before it, `outer` those before that; `down` are
    the other reduction axes, outermost first.
    """

    outer: tuple[Axis, ...]
    line: Axis | None
    pixel: Axis | None
    down: tuple[Axis, ...]
    across: Axis | None


def sliding_axes(
    images: Sequence[LinearAccess],
    extents: Sequence[Dim],
    pixels: Sequence[int],
    reduction: Sequence[int],
    *,
    copied: bool = False,
) -> SlidingAxes | Refusal:
    """The roles of the loops `pixels` of the result and `reduction` of the window, as they step over the image; how far
    need not be known where it is `copied`."""
    axes = {loop: Axis((loop,), (extents[loop],)) for loop in (*pixels, *reduction)}
    moving = sorted(
        (loop for loop in reduction if extents[loop] != 1), key=lambda loop: -abs(estimated(images[0].stride(loop)))
    )
    pixel = pixels[-1] if pixels and (copied or _slides(images, pixels[-1])) else None
    rest = [loop for loop in pixels if loop != pixel]
    across = _across(images, pixel, moving, extents, copied=copied)
    if any(not _simple(bound, moving) for access in images for bound in access.bounds):
        return Refusal("window-map", "a padded coordinate mixes several window loops")
    return SlidingAxes(
        tuple(axes[loop] for loop in rest[:-1]), axes[rest[-1]] if rest else None,
        axes[pixel] if pixel is not None else None,
        tuple(axes[loop] for loop in moving if loop != across), axes[across] if across is not None else None,
    )  # fmt: skip


def _slides(images: Sequence[LinearAccess], loop: int) -> bool:
    """Whether tiling `loop` is of use: it moves over the image by a number known now."""
    return all(isinstance(access.stride(loop), int) for access in images)


def _across(
    images: Sequence[LinearAccess], pixel: int | None, reduction: Sequence[int], extents: Sequence[Dim], *, copied: bool
) -> int | None:
    """The reduction loop that steps along the line as pixels do: short, of a known extent, and a whole number of
    columns per step."""
    if pixel is None:
        return None
    along = [bound for access in images for bound in access.bounds if pixel in bound.coordinate.terms]
    shared = [loop for bound in along for loop in reduction if loop in bound.coordinate.terms]
    candidates = shared or list(reduction[-1:])
    for loop in candidates:
        extent = extents[loop]
        if isinstance(extent, int) and extent <= UNROLLED_WINDOW and (copied or _slides(images, loop)):
            return loop
    return None


def _simple(bound: Bound, reduction: Sequence[int]) -> bool:
    steps = [bound.coordinate.terms[loop] for loop in reduction if loop in bound.coordinate.terms]
    return len(steps) <= 1 and all(isinstance(step, int) and step > 0 for step in steps)
