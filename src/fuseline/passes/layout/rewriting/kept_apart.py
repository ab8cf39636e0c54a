"""Reshapes that keep apart two ops which might share a dispatch otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import tensor
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.structured import HEAVY, Kind, is_generic, kind
from fuseline.ir.fast.direct import ops_of
from fuseline.passes.layout.rewriting.free_reshapes import is_free
from fuseline.passes.layout.rewriting.permutation import users_of
from fuseline.passes.layout.rewriting.reshapes import ReshapeOp, is_reshape, root_of
from fuseline.passes.layout.rewriting.scope import Scope

_APART_ANYWAY = (*HEAVY, Kind.RESHAPE, Kind.OTHER)
"""Readers that no reshape keeps from their producers."""


def reshapes_between(scope: Scope) -> Iterator[ReshapeOp]:
    """Every reshape of what a generic makes that an op reads which could share a dispatch with its maker. Reshapes may
    vanish while they are traversed."""
    for op in ops_of(scope.block):
        if is_reshape(op) and op.parent is not None and _keeps_apart(op):
            yield op


def images_between(scope: Scope) -> Iterator[ReshapeOp]:
    """Every reshape of what a generic makes that a depthwise window alone reads. Reshapes may vanish while they are
    traversed."""
    for op in ops_of(scope.block):
        if is_reshape(op) and op.parent is not None and _is_computed(root_of(op.src)):
            if all(kind(user) is Kind.DEPTHWISE for user in users_of(op.result)):
                yield op


def _is_computed(root: SSAValue) -> bool:
    return not is_free(root) and type(root) is OpResult and is_generic(root.op)


def _keeps_apart(op: ReshapeOp) -> bool:
    return _is_computed(root_of(op.src)) and any(_may_join(op, user) for user in users_of(op.result))


def _may_join(op: ReshapeOp, reader: Operation) -> bool:
    """Whether `reader` could share a dispatch with what makes the operand of `op`; a contraction over a sum of fewer
    loops could be the next root of a chain."""
    what = kind(reader)
    return what not in _APART_ANYWAY or (what is Kind.CONTRACTION and type(op) is tensor.CollapseShapeOp)
