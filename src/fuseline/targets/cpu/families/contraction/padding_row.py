"""The padding row of a contraction: pad values in scratch, read where a row of the image lies outside of it."""

from __future__ import annotations

from fuseline.analysis.linear_forms import Linear
from fuseline.analysis.operand_access import Bound
from fuseline.ir import dim as d
from fuseline.targets.cpu.families.contraction.axes import Axis, estimated
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops, RowSegment

PADDING_ROW_LIMIT = 16 * 1024
"""Elements of the padding row; a reach beyond it is packed instead."""


def padding_row_elements(loops: ContractionLoops) -> int | None:
    """How many pad values the loops inside an edge check reach; 0 without edges, None where addresses cannot be chosen
    per tile."""
    reaches = [_padding_row_of(loops, segment) for segment in loops.segments]
    known = [reach for reach in reaches if reach is not None]
    return max(known) if known and len(known) == len(reaches) and max(known) <= PADDING_ROW_LIMIT else None


def _padding_row_of(loops: ContractionLoops, segment: RowSegment) -> int | None:
    rounds = [_level(segment, q.numerator) for q in segment.access.floordiv_terms]
    if any(level is None or 0 < len(segment.reduction) == level for level in rounds):
        return None
    if segment.access.borders and not _folds(segment):
        return None
    reach = 0
    for bound in segment.access.padding:
        level = _level(segment, bound.coordinate)
        if level and _clips(loops, segment, bound):
            continue
        inner = segment.reduction[level:] if level is not None else None
        steps = [_reach(segment, axis) for axis in inner] if inner is not None else [None]
        if None in steps or level is None or any(later is not None and later > level for later in rounds):
            return None
        reach = max(reach, 1 + sum(step for step in steps if step is not None))
    return reach


def _folds(segment: RowSegment) -> bool:
    """Whether what borders add is known at some level each, and added to nothing but addresses in the image; of sizes
    that only the run knows it would take too long (`analysis/prologue.py`)."""
    alone = not segment.access.padding and not segment.access.floordiv_terms
    return alone and all(
        isinstance(bound.size, int) and _level(segment, bound.coordinate) is not None
        for bound in segment.access.borders
    )


def _clips(loops: ContractionLoops, segment: RowSegment, bound: Bound) -> bool:
    """Whether a bound shortens a loop of the reduction: it is the same for all rows of a tile, and padding adds
    nothing."""
    tiled = loops.rows[-1].inner if loops.rows else None
    return segment.access.pad == 0 and tiled not in bound.coordinate.terms


def padding_row_steps(loops: ContractionLoops) -> int:
    """The reduction steps that follow an edge check of a tile's rows: the fewest of a segment, on average over the
    segments."""
    tiled = loops.rows[-1].inner if loops.rows else None
    steps: list[int] = []
    for segment in loops.segments:
        levels = [
            _level(segment, bound.coordinate) for bound in segment.access.bounds if tiled in bound.coordinate.terms
        ]
        found = [
            estimated(d.product(axis.extent for axis in segment.reduction[level:]))
            for level in levels
            if level is not None
        ]
        steps += [min(found)] if found else []
    return sum(steps) // len(steps) if steps else PADDING_ROW_LIMIT


def _level(segment: RowSegment, form: Linear) -> int | None:
    """The level of the reduction nest at which a coordinate is known (one past its own axis); None where it never
    is."""
    mine = [i for i, axis in enumerate(segment.reduction) if any(loop in form.terms for loop in axis.loops)]
    if len(mine) > 1:
        return None
    for i in mine:
        coefficient = form.terms[segment.reduction[i].inner]
        if not isinstance(coefficient, int) or coefficient <= 0 or len(segment.reduction[i].loops) > 1:
            return None
    return mine[0] + 1 if mine else 0


def _reach(segment: RowSegment, axis: Axis) -> int | None:
    stride, extent = segment.operand.stride(axis), axis.extent
    return stride * (extent - 1) if isinstance(stride, int) and isinstance(extent, int) and stride >= 0 else None
