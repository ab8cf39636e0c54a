"""Reductions side by side: those of a group that go along the same loops and need nothing of each other are made in one
traversal, so that what both read is loaded once.

    sum over s of x(s, c)        sum over s of x(s, c)²
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.families.combining import adds_floats
from fuseline.targets.cpu.families.nests.stages import Stage

MOST = 2
"""Reductions in one traversal: several vectors of each are in registers."""


def traversals(stages: Sequence[Stage], alone: Collection[Stage], shapes: ShapeAnalysis) -> list[list[Stage]]:
    """The stages in order, each with those behind it that are made with it; those of `alone` by themselves."""
    found = list[list[Stage]]()
    for i, stage in enumerate(stages):
        first = next((one for one in found if _fits(stage, one, stages[:i], alone, shapes)), None)
        if first is not None:
            first.append(stage)
        else:
            found.append([stage])
    return found


def _fits(
    stage: Stage, made: Sequence[Stage], before: Sequence[Stage], alone: Collection[Stage], shapes: ShapeAnalysis
) -> bool:
    """Whether `stage` goes along the loops of `made`, and reads nothing that is only there after them."""
    first = made[0]
    if stage.op is None or first.op is None or len(made) == MOST or stage in alone or first in alone:
        return False
    later = {value for other in before[before.index(first) :] for value in other.values}
    alike = _extents(stage, shapes) == _extents(first, shapes) and adds_floats(stage.op) == adds_floats(first.op)
    return alike and stage.reads.isdisjoint(later)


def _extents(stage: Stage, shapes: ShapeAnalysis) -> list[Dim]:
    assert stage.op is not None
    structured = StructuredOp(stage.op)
    return [structured.loops(shapes)[loop] for loop in structured.reduction]
