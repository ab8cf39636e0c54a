"""Windows in a dispatch of several roots or reductions, in blocks of points: over an image that is computed where it is
read, or whose channels come first and are written last, a block would go with the loop nest, and evaluate what lies
around it. By itself such a window evaluates its image in strips, and runs along the pixels of a line."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.ir import Operation

from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.operand_access import segments
from fuseline.analysis.producers import is_stored, producers_of
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
        if member.kind not in CHANNEL_WINDOWS or not is_generic(member.op):
            continue
        if not (several or _keeps_loops(member, placed.grid_loops, arm)):
            continue
        if _computes_image(member, inlined):
            return Refusal("image-computed", "blocks of points would each evaluate the image around them")
        if several and _reads_planes(member, inlined, arm):
            return Refusal("planes", "in blocks of points a window walks channels, which do not lie innermost here")
    return None


def _reads_planes(member: CandidateMember, inlined: Collection[Operation], arm: DispatchCandidate) -> bool:
    """Whether a window goes over a stored image of which no loop steps from element to element but those that it slides
    along, and the innermost one of the result is none of those."""
    assert is_generic(member.op)
    view = StructuredOp(member.op)
    position = next(i for i in range(len(view.inputs)) if not is_filter(view, i))
    operand, extents = (view.inputs[position], view.input_maps[position]), view.loops(arm.shapes)
    found = segments(arm.shapes, *operand, extents, lambda value: is_stored(value, inlined)) or ()
    moving = [loop for loop in view.parallel if extents[loop] != 1]
    lanes = {loop for loop in moving if found and all(one.access.stride(loop) == 1 for one in found)}
    coordinates = [dims_of(expr) for expr in operand[1].results]
    slid = all(any(lane in c and c & set(view.reduction) for c in coordinates) for lane in lanes)
    written = [loop for expr in view.output_maps[0].results for loop in dims_of(expr) if extents[loop] != 1]
    return bool(lanes) and slid and written[-1] not in lanes


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
