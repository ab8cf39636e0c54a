"""Pass `require-inserts-inside`: an element is put where the tensor has one.

The place of a `tensor.insert` that follows from sizes must be inside of the tensor; where that does not follow from the
symbols alone it becomes a requirement of the program, and feeds that break it are refused (E0203). At a place that
depends on data that lies outside, nothing is put.

    tensor.insert %s into %t[%i]      requires size of t >= i + 1, i >= 0
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext
from fuseline.passes.cleanup.inside_requirements import operations, require_inside


@dataclass(frozen=True)
class RequireInsertsInsidePass(ModulePass):
    """Notes in the context what sizes must be for every element to have its place.

    Raises FuselineError: E0107 for one that never has.
    """

    name = "require-inserts-inside"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every insert; nothing changes."""
        assert isinstance(ctx, CompilerContext)
        shapes = ShapeAnalysis(ctx.symbols)
        for inner in operations(op):
            if isinstance(inner, tensor.InsertOp):
                _look_at(ctx, inner, shapes)


def _look_at(ctx: CompilerContext, op: tensor.InsertOp, shapes: ShapeAnalysis) -> None:
    for position, size in zip(op.indices, shapes.dims(op.dest), strict=True):
        at = shapes.index(position)
        if all(symbol.name in ctx.symbols for symbol in d.symbols(at)):  # others are data
            require_inside(ctx, op, (at, at), size, (), does="writes")


EXPORT = RequireInsertsInsidePass
