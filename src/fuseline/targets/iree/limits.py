"""Which dispatches IREE's code generation for CPUs takes, as far as it can be told from the ops.

It tiles a dispatch around one root and makes the other ops in the root's tiles; what does not follow those tiles is
put on the stack whole, of which there are 32 KB, or fails to tile at all. Each refusal here is a pattern that fails in
IREE 3.13 (docs/iree.md has them, tests/iree/patterns the smallest program of each).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.convolution_dims import convolution_dims
from fuseline.analysis.ranks import rank_of
from fuseline.analysis.shapes import static_numbers
from fuseline.analysis.structured import WINDOWS, Kind, StructuredOp, is_generic, kind, tensor_operands
from fuseline.dispatch.candidate import CandidateMember, DispatchCandidate
from fuseline.ir.build import shape_of
from fuseline.targets.target import Refusal

MOST_RANKED = 1 << 13
"""Elements of a row that are compared with each other."""

Check = Callable[[DispatchCandidate, "frozenset[Kind]"], Refusal | None]

_VIEWS = frozenset({Kind.RESHAPE, Kind.SLICE})


def refusal_of(candidate: DispatchCandidate) -> Refusal | None:
    """Why IREE would not compile a dispatch of several ops; None where nothing is known against it."""
    if len(candidate.members) < 2:
        return None
    kinds = frozenset(member.kind for member in candidate.members)
    return next((refusal for check in _CHECKS if (refusal := check(candidate, kinds)) is not None), None)


def long_rank(op: Operation) -> Refusal | None:
    """IREE compares each element of a row with each: of long rows the host's sort is faster."""
    view = StructuredOp(op) if is_generic(op) else None
    rank = rank_of(view) if view is not None and view.reduction else None
    if rank is None:
        return None
    written = rank.root.output_maps[0].results
    sizes = zip(written, shape_of(rank.root.op.results[0]), strict=True)
    longest = max((size for at, size in sizes if at == AffineDimExpr(rank.ranked)), default=0)
    if longest <= MOST_RANKED:
        return None
    return Refusal("iree-rank-length", f"each of {longest} elements of a row would be compared with each")


def _concat(candidate: DispatchCandidate, kinds: frozenset[Kind]) -> Refusal | None:
    if Kind.CONCAT not in kinds:
        return None
    return Refusal("iree-concat", "'tensor.concat' op failed to tile operation: IREE does not tile a concat")


def _gathered_reduction(candidate: DispatchCandidate, kinds: frozenset[Kind]) -> Refusal | None:
    """What is gathered is not made in vectors; read by a reduction, whole rows of it are put on the stack."""
    if Kind.GATHER not in kinds or not any(member.reduces for member in candidate.members):
        return None
    return Refusal("iree-gather-reduction", "rows that are gathered and reduced are put on the stack, 32 KB at most")


def _computed_pad(candidate: DispatchCandidate, kinds: frozenset[Kind]) -> Refusal | None:
    """What is computed and padded in one dispatch lies in the wrong place: IREE forgets the offset of the interior."""
    if Kind.PAD not in kinds:
        return None
    made = {member.op for member in candidate.members}
    if any(viewed(member.op.operands[0]).owner in made for member in candidate.members if member.kind is Kind.PAD):
        return Refusal("iree-computed-pad", "a pad of what the dispatch computes is wrong in IREE's code")
    return None


def _padded_lanes(candidate: DispatchCandidate, kinds: frozenset[Kind]) -> Refusal | None:
    """IREE makes a pad in vectors of its reader's innermost loop. Where that is no loop over channels, its compiler
    ends with a fault, or finds no way to tile."""
    if Kind.PAD not in kinds:
        return None
    pads = [member.op for member in candidate.members if member.kind is Kind.PAD]
    windows = [member for member in candidate.members if member.kind in WINDOWS]
    if windows and all(_is_over_channels(member) for member in windows):
        return None
    if not windows and not any(pads_innermost(op) for op in pads):
        return None
    return Refusal("iree-padded-lanes", "a pad of what its reader has in vector lanes crashes IREE's compiler")


def _is_over_channels(member: CandidateMember) -> bool:
    """Whether the innermost loop of a window's result is over channels."""
    if not is_generic(member.op):
        return False
    view = StructuredOp(member.op)
    dims = convolution_dims(view)
    lanes = view.output_maps[0].results[-1:]
    return dims is not None and lanes[0] in [AffineDimExpr(loop) for loop in (*dims.output_channel, *dims.depth)]


def pads_innermost(op: Operation) -> bool:
    """Whether a `tensor.pad` adds to its last dimension, or may."""
    added = (*static_numbers(op, "static_low")[-1:], *static_numbers(op, "static_high")[-1:])
    return any(number != 0 for number in added)


def _spread_window(candidate: DispatchCandidate, kinds: frozenset[Kind]) -> Refusal | None:
    """An upsampled image that a window reads is made whole, on the stack."""
    if not kinds & WINDOWS or not kinds & {Kind.BROADCAST}:
        return None
    return Refusal("iree-spread-window", "an image that is spread and read by a window is put on the stack whole")


def _shifted_result(candidate: DispatchCandidate, kinds: frozenset[Kind]) -> Refusal | None:
    """A workgroup computes its tile of each result. Where another member reads a result elsewhere, IREE takes what that
    workgroup wrote for what another one should have: the code compiles, and its answers are wrong."""
    del kinds
    results = {*candidate.results}
    for member in candidate.members:
        for value in tensor_operands(member.op):
            if viewed(value) in results and not (value in results and _is_read_in_place(member.op, value)):
                detail = "a result that another op reads at other points is wrong in IREE's code"
                return Refusal("iree-shifted-result", detail)
    return None


def viewed(value: SSAValue) -> SSAValue:
    """What a value is a reshape or a slice of."""
    while isinstance(value.owner, Operation) and kind(value.owner) in _VIEWS:
        value = value.owner.operands[0]
    return value


def _is_read_in_place(op: Operation, value: SSAValue) -> bool:
    """Whether an op reads a value at loops of its own, each once, in their order."""
    if not is_generic(op):
        return False
    view = StructuredOp(op)
    maps = [map_ for operand, map_ in zip(view.inputs, view.input_maps, strict=True) if operand is value]
    return bool(maps) and all(_is_in_order(map_) for map_ in maps)


def _is_in_order(map_: AffineMap) -> bool:
    loops = [expr.position for expr in map_.results if isinstance(expr, AffineDimExpr)]
    return len(loops) == len(map_.results) and all(first < second for first, second in pairwise(loops))


_CHECKS: Sequence[Check] = (
    _shifted_result,
    _computed_pad,
    _concat,
    _gathered_reduction,
    _spread_window,
    _padded_lanes,
)


def is_loose(members: Sequence[Operation]) -> bool:
    """Whether a dispatch of these ops is left to IREE's own formation, which has a way for it that a region has not: it
    writes a concat, and a pad, as copies."""
    if len(members) != 1:
        return False
    return kind(members[0]) is Kind.CONCAT or (kind(members[0]) is Kind.PAD and pads_innermost(members[0]))
