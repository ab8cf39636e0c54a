"""split-transposed-writers: what makes a tensor that is expanded and then transposed runs over the expanded loops, so
that propagate-transposes lets it write in that order.

    %r = generic (i, j) over (64, 64)                          %r = generic (a, b, c, d) over (8, 8, 8, 8)
    %e = expand_shape %r to 8 x 8 x 8 x 8              =>      %t = transpose %r [0, 2, 1, 3]
    %t = transpose %e [0, 2, 1, 3]

Windows of attention are put back into an image so (Z. Liu et al., Swin Transformer, 2021). Only for transposes that
no reader takes into its own maps, and only where no new reshape comes between two ops that may share a dispatch: the
expand climbs to reshapes that it undoes, to what costs nothing, or to the result of another root op, which is stored in
any case. Rows climb to all that may share a dispatch through them, other readers included, up to what lies in memory by
then (`rewriting/rows_together.py`): a chain of products and norms, of which the last one is put back into an image,
is one dispatch with the image.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import linalg, tensor
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.moves import groups_of
from fuseline.analysis.structured import HEAVY, Kind, is_generic, kind
from fuseline.ir.fast.direct import operand_of, ops_of
from fuseline.passes.layout.rewriting.permutation import permutation_of, users_of
from fuseline.passes.layout.rewriting.reshapes import root_of
from fuseline.passes.layout.rewriting.rows_together import rows_together
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass
from fuseline.passes.layout.rewriting.transposes_up import whole_groups
from fuseline.passes.layout.rewriting.upward import climb, climbs

_EPILOGUE = 8
"""How many elementwise ops behind a root op are looked through."""


@dataclass(frozen=True)
class SplitTransposedWritersPass(ScopedPass):
    """Has no options."""

    name = "split-transposed-writers"

    def rewrite(self, scope: Scope) -> None:
        """From the last op to the first, as expands climb."""
        scope.lift_sizes()
        scope.sweep()
        for op in reversed(ops_of(scope.block)):
            if type(op) is not tensor.ExpandShapeOp or op.parent is None or not _is_torn(op):
                continue
            together = rows_together(scope, op)
            if together is not None:
                together.apply()
            elif _climbs(scope, op):
                climb(scope, op, _is_stored)
        scope.sweep()


def _is_torn(op: tensor.ExpandShapeOp) -> bool:
    """Whether nothing but a transpose reads `op`, which takes its groups apart and stands alone."""
    readers = users_of(op.result)
    if len(readers) != 1 or type(readers[0]) is not linalg.ops.TransposeOp:
        return False
    top = readers[0]
    return whole_groups(permutation_of(top), groups_of(op)) is None and not any(map(is_generic, users_of(top.res[0])))


def _climbs(scope: Scope, op: tensor.ExpandShapeOp) -> bool:
    source = op.src
    if type(source) is not OpResult or not is_generic(source.op):
        return False
    return climbs(scope, source, scope.dims(op.result), stays=_is_stored)[0]


def _is_stored(reader: Operation, operand: SSAValue) -> bool:
    """Whether a root op reads what another one makes, or the epilogue of another one."""
    value = root_of(operand)
    for _ in range(_EPILOGUE):
        if not _is_root(reader) or type(value) is not OpResult or not is_generic(value.op):
            return False
        if kind(value.op) is not Kind.ELEMENTWISE:
            return _is_root(value.op)
        value = root_of(operand_of(value.op, 0))
    return False


def _is_root(op: Operation) -> bool:
    return is_generic(op) and kind(op) in HEAVY


EXPORT = SplitTransposedWritersPass
