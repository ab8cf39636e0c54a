"""Windows over images whose channels come first: whether the pixels of a line are neighbours, as the loops of the
result are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.operand_access import LinearAccess, Segment
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, is_generic

MOST_LANE_STEP = 4
"""Elements of the image between two lanes: up to so many, vectors that hold them all are loaded and picked from."""


def runs_along_lines(root: StructuredOp, position: int, segment: Segment, shapes: ShapeAnalysis) -> bool:
    """Whether a window of a known size goes over lines of its image, input `position`, whose pixels are neighbours or a
    few elements apart, so that the lines may be copied one by one, gaps and all."""
    extents = root.loops(shapes)
    window = [loop for loop in root.reduction if extents[loop] != 1]
    if len(window) > 2 or segment.access.floordiv_terms:
        return False
    for written in written_orders(root):
        moving = [loop for loop in written if extents[loop] != 1]
        known = all(isinstance(extents[loop], int) for loop in window)
        if known and len(moving) > 1 and _meets_whole_lines(root, position, moving[-1], segment.access):
            return True
    return False


def _meets_whole_lines(root: StructuredOp, position: int, lane: int, access: LinearAccess) -> bool:
    """Whether lanes along a loop are at most so many elements apart, and a window over them meets every element of a
    line."""
    stride = access.stride(lane)
    taps = [access.stride(loop) for loop in _beside(root, position, lane)]
    steps = [step for step in (stride, *taps) if isinstance(step, int)]
    return isinstance(stride, int) and 0 < stride <= MOST_LANE_STEP and len(steps) == 1 + len(taps) and gcd(*steps) == 1


def _beside(root: StructuredOp, position: int, lane: int) -> Sequence[int]:
    """The loops of the window in the coordinate that `lane` moves, if they run more than once."""
    coordinates = [dims_of(expr) for expr in root.input_maps[position].results]
    return [loop for loop in root.reduction if any(lane in loops and loop in loops for loops in coordinates)]


def written_orders(root: StructuredOp) -> Iterator[list[int]]:
    """The orders in which the loops of a root are written: by itself, and by readers behind it that turn its result,
    each the only one of what it reads."""
    loops = [expr.position for expr in root.output_maps[0].results if isinstance(expr, AffineDimExpr)]
    yield loops
    if len(loops) != len(root.output_maps[0].results):
        return
    value: SSAValue = root.op.results[0]
    while (turned := _turned(value, loops)) is not None:
        value, loops = turned
        yield loops


def _turned(value: SSAValue, loops: Sequence[int]) -> tuple[SSAValue, list[int]] | None:
    """What the only reader of `value`, whose dimensions are `loops`, makes of it point by point, and which loops the
    dimensions of that are; None without such a reader."""
    uses = list(value.uses)
    reader = uses[0].operation if len(uses) == 1 else None
    if reader is None or not is_generic(reader) or len(reader.results) != 1:
        return None
    view = StructuredOp(reader)
    if view.reduction or uses[0].index >= len(view.inputs):
        return None
    loop_of = {expr: loop for expr, loop in zip(view.maps[uses[0].index].results, loops, strict=True)}
    found = [loop_of[expr] for expr in view.output_maps[0].results if expr in loop_of]
    return (reader.results[0], found) if len(found) == len(loops) == len(view.output_maps[0].results) else None
