"""Which dispatches the families take as more than a plain loop nest, as far as it can be told without a plan.

A kernel around a root (a contraction, a convolution, a window) writes each result at the points where it computes it. A
result that an op moves on its way out (a pad, a slice, a transposition), or one element that all blocks of points add
to, would leave the whole dispatch, root and all, to the loop nest; by itself it is one copy, or one small dispatch.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import OpResult, SSAValue

from fuseline.analysis.structured import is_generic
from fuseline.dispatch.candidate import CandidateMember, DispatchCandidate
from fuseline.targets.target import Refusal


def refusal_of(candidate: DispatchCandidate) -> Refusal | None:
    """Why no family but the loop nest would take a dispatch around a root; None where one does, or where there is no
    root."""
    if not candidate.has_root or not _is_of_a_piece(candidate):
        return None
    computed = [member for member in candidate.members if not member.inlined]
    refusals = (_result_refusal(value, computed) for value in candidate.results)
    return next((refusal for refusal in refusals if refusal is not None), None)


def _is_of_a_piece(candidate: DispatchCandidate) -> bool:
    """Whether the dispatch has one kernel. Arms have one each, and what was asked about each; but a concat whose parts
    all come from one other arm is made by that."""
    if len(candidate.arms) == 1:
        return True
    parts, concats = (
        [arm for arm in candidate.arms if arm.has_root],
        [arm for arm in candidate.arms if not arm.has_root],
    )
    if len(parts) != 1 or len(concats) != 1:
        return False
    made = {member.op for member in parts[0].members}
    return all(isinstance(value, OpResult) and value.op in made for value in concats[0].operands)


def _result_refusal(value: SSAValue, computed: Sequence[CandidateMember]) -> Refusal | None:
    """Why a result is not written where one of the members `computed` makes it. Where several reduce, blocks of points
    are met one by one."""
    assert isinstance(value, OpResult) and isinstance(value.type, TensorType)
    several = sum(member.reduces for member in computed) > 1
    if is_generic(value.op):
        scalar = several and value.type.get_num_dims() == 0
        return (
            Refusal(
                "scalar-result",
                f"{value.op.name} makes one element of all blocks; the root would be left to the loop nest",
            )
            if scalar
            else None
        )
    if (
        several
        and isinstance(value.op, tensor.ConcatOp)
        and all(_is_made_by(part, computed) for part in value.op.inputs)
    ):
        return None
    return Refusal(
        "result-moved", f"{value.op.name} moves a result on its way out; the root would be left to the loop nest"
    )


def _is_made_by(value: SSAValue, members: Sequence[CandidateMember]) -> bool:
    return isinstance(value, OpResult) and any(member.op is value.op for member in members)
