"""Which dispatches the families take as more than a plain loop nest, as far as it can be told without a plan.

A kernel around a root (a contraction, a convolution, a window) writes each result at the points where it computes it. A
result that an op moves on its way out (a pad, a slice, a transposition of what others make), or one element that all
blocks of points add to, would leave the whole dispatch, root and all, to the loop nest; by itself it is one copy, or
one small dispatch. What the root makes may leave transposed as well (`passes/dispatch/write_transposed.py`), as long as
the caches hold it: lines of memory are written in several parts then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.cost import num_bytes
from fuseline.analysis.structured import is_generic
from fuseline.analysis.views import base_of
from fuseline.dispatch.candidate import CandidateMember, DispatchCandidate
from fuseline.ir.costs import assumed_size
from fuseline.targets.target import Refusal


def refusal_of(candidate: DispatchCandidate, cached_bytes: int) -> Refusal | None:
    """Why no family but the loop nest would take a dispatch around a root, or why a result is turned faster by itself;
    None where neither is so, or where there is no root. `cached_bytes`: what stays in a core's caches."""
    if not candidate.has_root:
        return None
    odd = [value for value in candidate.results if not _is_plain(value)]
    if not odd or not _is_of_a_piece(candidate):
        return None
    computed = [member for member in candidate.members if not member.inlined]
    stored = sum(assumed_size(num_bytes(value, candidate.shapes)) for value in candidate.results)
    refusals = (_result_refusal(value, computed, stored, cached_bytes) for value in odd)
    return next((refusal for refusal in refusals if refusal is not None), None)


def _is_plain(value: SSAValue) -> bool:
    """Whether a result is computed point by point, over a point at least for each block."""
    type_ = cast("TensorType[Any]", value.type)  # xDSL's classes are slow to ask about derivation
    return is_generic(value.owner) and len(type_.shape.data) > 0


def _is_of_a_piece(candidate: DispatchCandidate) -> bool:
    """Whether the dispatch has one kernel. Arms have one each, and what was asked about each; but a concat whose parts
    all come from one other arm, or are cut from what it makes, is made by that."""
    arms = candidate.arms
    if len(arms) == 1:
        return True
    makers, concats = [arm for arm in arms if arm.has_root], [arm for arm in arms if not arm.has_root]
    if len(makers) != 1 or len(concats) != 1:
        return False
    made = {member.op for arm in (*makers, *concats) for member in arm.members}
    read = [base_of(value) for member in concats[0].members for value in member.op.operands]  # fills are copied
    return all(isinstance(value, OpResult) and value.op in made for value in read)


def _result_refusal(
    value: SSAValue, computed: Sequence[CandidateMember], stored: int, cached_bytes: int
) -> Refusal | None:
    """Why a result that is not plain is not written by the members `computed`. Where several reduce, blocks of points
    are met one by one. `stored`: bytes of all results, which are in the caches together."""
    several = sum(member.reduces for member in computed) > 1
    op, left = cast("Operation", value.owner), "the root would be left to the loop nest"
    if is_generic(op):
        return Refusal("scalar-result", f"{op.name} makes one element of all blocks; {left}") if several else None
    if isinstance(op, linalg.ops.TransposeOp) and _is_made_by(op.inputs[0], computed):
        beyond = f"of {stored:,} bytes that are stored, lines of {op.name} leave the caches before they are whole"
        return Refusal("result-moved", beyond) if stored > cached_bytes else None
    if several and isinstance(op, tensor.ConcatOp) and all(_is_made_by(part, computed) for part in op.inputs):
        return None
    return Refusal("result-moved", f"{op.name} moves a result on its way out; {left}")


def _is_made_by(value: SSAValue, members: Sequence[CandidateMember]) -> bool:
    return any(member.op is value.owner for member in members)
