"""The loop of a window's result that runs along the lanes: the channels of an image, or, where those come first, the
pixels of a line."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.analysis.operand_access import Segment
from fuseline.analysis.pixel_lines import MOST_LANE_STEP
from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.contraction.results import result_paths
from fuseline.targets.target import Refusal


def channel_lane(found: Sequence[Segment], moving: Sequence[int]) -> int | None:
    """The loop for the lanes: contiguous in the image, never in its padding, the one that a concat cuts; innermost if
    there is a choice."""
    padded = {loop for segment in found for bound in segment.access.bounds for loop in bound.coordinate.terms}
    lanes = [
        loop
        for loop in moving
        if loop not in padded and all(s.loop in (None, loop) and s.access.stride(loop) == 1 for s in found)
    ]
    return lanes[-1] if lanes else None


def pixel_lane(found: Sequence[Segment], moving: Sequence[int]) -> int | None:
    """The loop for the lanes of planes: the innermost of the result, where it steps over the image by a few elements;
    it may be in its padding."""
    stride = found[0].access.stride(moving[-1])
    return moving[-1] if isinstance(stride, int) and 0 < stride <= MOST_LANE_STEP else None


def as_written(view: DispatchView, moving: Sequence[int], found: Sequence[Segment]) -> list[int]:
    """The loops in the order of the first result along which lanes step over the image, where an epilogue turns it on
    its way out."""
    paths = result_paths(view)
    for path in () if isinstance(paths, Refusal) else paths:
        written = [loop for loop in path.coordinates if isinstance(loop, int) and loop in moving]
        if len(written) == len(moving) and pixel_lane(found, written) is not None:
            return written
    return list(moving)
