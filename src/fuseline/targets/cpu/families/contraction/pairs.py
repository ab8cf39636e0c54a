"""Narrow integers in pairs: which reductions can be traversed two steps at a time.

A pair of neighbouring i16 is broadcast as one element of 32 bits, multiplied by pairs of two columns' lanes, and both
products are added to the sum in i32. A step of one element broadcasts it beside a zero; it takes as long and does half
as much.
"""

from __future__ import annotations

from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops, LhsMode, RhsMode, RowSegment

PAIR, QUAD = 2, 4
"""Steps of 16 bits, and of 8 bits, in an element of 32."""


def reads_as_stored(loops: ContractionLoops) -> bool:
    """Whether the left operand lies in memory as the kernel reads it: narrow integers of 8 bits are widened on the way
    to scratch."""
    return all(dtype_of(segment.access.source.type) == loops.elements[0] for segment in loops.segments)


def reads_across_memory(loops: ContractionLoops) -> bool:
    """Whether pairs along the innermost axis are no neighbours where they lie, but would be in scratch."""
    if not loops.narrow or not loops.reduction or loops.reduction[-1].extent == 1:
        return False
    return any(segment.operand.stride(loops.reduction[-1]) != 1 for segment in loops.segments)


def takes_pairs(loops: ContractionLoops, lhs_mode: LhsMode, rhs_mode: RhsMode, together: int = PAIR) -> bool:
    """Whether the innermost axis is traversed in pairs (`together`: in more): they are neighbours on the left, and the
    columns are laid out for it."""
    if not loops.narrow or not loops.reduction or rhs_mode not in ("constant", "packed") or lhs_mode == "pulled":
        return False
    if not isinstance(loops.reduction[-1].extent, int):
        return False  # whether a last step stands alone is known when it runs
    if loops.box is not None and lhs_mode == "boxed":
        return loops.box.runs_along(loops.reduction[-1].inner)
    return lhs_mode == "packed" or all(_side_by_side(loops, segment, together) for segment in loops.segments)


def steps_together(loops: ContractionLoops, lhs_mode: LhsMode, rhs_mode: RhsMode) -> int:
    """How many steps of the innermost axis are one of the kernel."""
    if loops.in_bytes:
        return QUAD if takes_quads(loops, lhs_mode, rhs_mode) else 1
    return PAIR if takes_pairs(loops, lhs_mode, rhs_mode) else 1


def takes_quads(loops: ContractionLoops, lhs_mode: LhsMode, rhs_mode: RhsMode) -> bool:
    """Whether the innermost axis is traversed four steps at a time, in bytes as they lie."""
    return rhs_mode == "constant" and takes_pairs(loops, lhs_mode, rhs_mode, QUAD)


def _side_by_side(loops: ContractionLoops, segment: RowSegment, together: int) -> bool:
    """Whether neighbours along the innermost axis lie side by side, none of them in the padding alone, from a whole
    step of the kernel on."""
    axis = loops.reduction[-1]
    forms = [bound.coordinate for bound in segment.access.bounds] + [
        quotient.numerator for quotient in segment.access.floordiv_terms
    ]
    if any(loop in form.terms for form in forms for loop in axis.loops):
        return False
    start = segment.first(axis)
    return segment.operand.stride(axis) == 1 and isinstance(start, int) and start % together == 0
