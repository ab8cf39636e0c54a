"""Windows over an image that is computed where it is read, in a dispatch of several roots or reductions: a block of
points would evaluate what lies around it, with the loop nest. By itself such a window evaluates its image in strips."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.ir import Operation

from fuseline.analysis.producers import producers_of
from fuseline.analysis.staged_filters import is_filter
from fuseline.analysis.structured import CHANNEL_WINDOWS, Kind, StructuredOp, is_generic, kind
from fuseline.dispatch.candidate import CandidateMember, DispatchCandidate
from fuseline.targets.target import Refusal


def window_refusal(candidate: DispatchCandidate) -> Refusal | None:
    """Why a window is not part of the blocks of a candidate, None where there is none such."""
    if not any(member.kind in CHANNEL_WINDOWS for member in candidate.members):
        return None
    return next((found for found in map(_refusal, candidate.arms) if found is not None), None)


def _refusal(arm: DispatchCandidate) -> Refusal | None:
    inlined = {member.op for member in arm.members if member.inlined}
    several = sum(member.reduces and not member.inlined for member in arm.members) > 1
    for member, placed in zip(arm.members, arm.loops.members, strict=True):
        if not _computes_image(member, inlined) or not (several or _keeps_loops(member, placed.grid_loops, arm)):
            continue
        return Refusal("image-computed", "blocks of points would each evaluate the image around them")
    return None


def _computes_image(member: CandidateMember, inlined: Collection[Operation]) -> bool:
    if member.kind not in CHANNEL_WINDOWS or not is_generic(member.op):
        return False
    view = StructuredOp(member.op)
    images = [value for i, value in enumerate(view.inputs) if not is_filter(view, i)]
    return any(kind(op) is Kind.ELEMENTWISE for value in images for op in producers_of(value, inlined))


def _keeps_loops(member: CandidateMember, grid_loops: tuple[int | None, ...], arm: DispatchCandidate) -> bool:
    """Whether a window has loops of its result to itself."""
    assert is_generic(member.op)
    view = StructuredOp(member.op)
    extents = view.loops(arm.shapes)
    return bool(grid_loops) and any(grid_loops[loop] is None and extents[loop] != 1 for loop in view.parallel)
