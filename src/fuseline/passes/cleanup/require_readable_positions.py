"""Pass `require-readable-positions`: reads at computed positions stay inside what they read, whatever sizes are fed.

A `tensor.extract` in the body of a structured op names its position by arithmetic on loop counters, sizes and data.
Where sizes tell between which positions it lies, and it does not follow from the symbols alone that both are inside the
tensor, that becomes a requirement of the program, and feeds that break it are refused (E0203) before anything is read.
Lowerings bring what depends on data into such a range with `min` and `max`, and `clamp-unproven-positions` what would
be asked too much of, so that nothing is left open here.

    x[clamp(i, 0, n - 1)]  for m counters       requires n >= 1 where m is not 0
    x[b, ..]               for b in 0..m        requires size of x >= m
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fuseline.analysis.scalar_ranges import ScalarRanges
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp
from fuseline.ir.context import CompilerContext
from fuseline.passes.cleanup.inside_requirements import operations, require_inside, require_to_fit


@dataclass(frozen=True)
class RequireReadablePositionsPass(ModulePass):
    """Notes in the context what sizes must be for every read at a computed place to lie inside.

    Raises FuselineError: E0107 for one that never does.
    """

    name = "require-readable-positions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every body; nothing changes."""
        assert isinstance(ctx, CompilerContext)
        shapes = ShapeAnalysis(ctx.symbols)
        for inner in operations(op):
            if isinstance(inner, tensor.ExtractOp) and isinstance(generic := inner.parent_op(), linalg.ops.GenericOp):
                _check(ctx, shapes, StructuredOp(generic), inner)


def _check(ctx: CompilerContext, shapes: ShapeAnalysis, view: StructuredOp, read: tensor.ExtractOp) -> None:
    ranges = ScalarRanges(shapes, view, ctx.resources)
    for position, size in zip(read.indices, shapes.dims(read.tensor), strict=True):
        found = ranges.of(position)
        require_inside(ctx, view.op, (found.low, found.high), size, view.loops(shapes))
    for size, bits in ranges.assumed:
        require_to_fit(ctx, view.op, size, bits)


EXPORT = RequireReadablePositionsPass
