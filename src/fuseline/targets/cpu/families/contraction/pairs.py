"""Narrow integers in pairs: which reductions can be walked two steps at a time.

A pair of neighbouring i16 is broadcast as one element of 32 bits, multiplied by pairs of two columns' lanes, and both
products are added to the sum in i32. A step of one element broadcasts it beside a zero; it takes as long and does half
as much.
"""

from __future__ import annotations

from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.contraction.problem import LhsMode, Problem, RhsMode, RowSegment


def reads_as_stored(problem: Problem) -> bool:
    """Whether the left operand lies in memory as the kernel reads it: narrow integers of 8 bits are widened on the way
    to scratch."""
    return all(dtype_of(segment.access.source.type) == problem.elements[0] for segment in problem.segments)


def walks_across(problem: Problem) -> bool:
    """Whether pairs along the innermost axis are no neighbours where they lie, but would be in scratch."""
    if not problem.narrow or not problem.reduction or problem.reduction[-1].extent == 1:
        return False
    return any(segment.operand.stride(problem.reduction[-1]) != 1 for segment in problem.segments)


def takes_pairs(problem: Problem, lhs_mode: LhsMode, rhs_mode: RhsMode) -> bool:
    """Whether the innermost axis is walked in pairs: they are neighbours on the left, and the columns are laid out for
    it."""
    if not problem.narrow or not problem.reduction or rhs_mode not in ("constant", "packed") or lhs_mode == "pulled":
        return False
    if not isinstance(problem.reduction[-1].extent, int):
        return False  # whether a last step stands alone is known when it runs
    return lhs_mode == "packed" or all(_in_pairs(problem, segment) for segment in problem.segments)


def _in_pairs(problem: Problem, segment: RowSegment) -> bool:
    """Whether neighbours along the innermost axis lie side by side, none of them in the padding alone, from an even
    step on."""
    axis = problem.reduction[-1]
    forms = [bound.coordinate for bound in segment.access.bounds] + [
        quotient.numerator for quotient in segment.access.quotients
    ]
    if any(loop in form.terms for form in forms for loop in axis.loops):
        return False
    start = segment.first(axis)
    return segment.operand.stride(axis) == 1 and isinstance(start, int) and start % 2 == 0
