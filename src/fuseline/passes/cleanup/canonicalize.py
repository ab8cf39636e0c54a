"""Bring IR into the one form that other passes expect: what does nothing goes, what can be said shorter is.

Identity transposes, reshapes, slices, pads and casts; pairs of reshapes; sizes that are known; generic operands and
results that nothing uses; what is moved out of empty tensors; splat inputs as scalars; scalar arithmetic. Every fold is
a function with its own drawing in `folds/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from fuseline.ir.context import CompilerContext
from fuseline.passes.cleanup.elimination import record_eliminated
from fuseline.passes.cleanup.folds import dims, fills, generics, reshapes, scalars, slices, undefined
from fuseline.passes.cleanup.folds.certain_bounds import fold_certain_bound
from fuseline.passes.cleanup.folds.no_elements import fold_no_elements
from fuseline.passes.cleanup.folds.plain_reads import fold_plain_read
from fuseline.passes.cleanup.folds.repeated_reads import fold_repeated_read
from fuseline.passes.cleanup.folds.scalar_reads import fold_scalar_read
from fuseline.passes.cleanup.folds.worklist import Fold, Worklist


@cache
def folds() -> dict[type[Operation], Sequence[Fold]]:
    """The folds by op class, in the order in which they are tried."""
    return {
        **scalars.scalar_folds(),
        linalg.ops.GenericOp: (
            fold_no_elements,
            *generics.GENERIC,
            *undefined.GENERIC,
            fold_scalar_read,
            fold_certain_bound,
            fold_plain_read,
            fold_repeated_read,
        ),
        linalg.ops.FillOp: (fold_no_elements, *fills.FILL),
        linalg.ops.TransposeOp: (*fills.TRANSPOSE, *undefined.MOVE),
        linalg.ops.BroadcastOp: undefined.MOVE,
        tensor.ExpandShapeOp: (*reshapes.FOLDS, *undefined.EXPAND),
        tensor.CollapseShapeOp: (*reshapes.FOLDS, *undefined.COLLAPSE),
        tensor.ExtractSliceOp: (*slices.EXTRACT, *undefined.EXTRACT),
        tensor.InsertSliceOp: slices.INSERT,
        tensor.PadOp: slices.PAD,
        tensor.ConcatOp: slices.CONCAT,
        tensor.CastOp: slices.CAST,
        tensor.DimOp: dims.FOLDS,
    }


@dataclass(frozen=True)
class CanonicalizePass(ModulePass):
    """Bring IR into canonical form."""

    name = "canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fold in every block of `op` until nothing changes; nodes that vanish are recorded."""
        work = Worklist(folds(), ctx.fuel if isinstance(ctx, CompilerContext) else None)
        work.run(op)
        record_eliminated(ctx, op, work.gone, self.name)


EXPORT = CanonicalizePass
