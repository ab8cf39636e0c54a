"""Pass `require-maps-inside`: indexing maps stay inside of what they index, whatever sizes are fed.

A structured op whose map is more than a choice of loops (a window, every other element, a row again and again) reads as
far as its loops and the map lead. Where it does not follow from the symbols alone that this is inside of the operand,
it becomes a requirement of the program, and feeds that break it are refused (E0203) before anything is read. Loops that
occur alone are the business of `require-equal-sizes`.

    x[2 * i + k]  for i in 0..m, k in 0..w      requires size of x >= 2 * (m - 1) + w     where m and w are not 0
    x[c - i]      for i in 0..m                 requires size of x >= c + 1, c - m + 1 >= 0
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass

from fuseline.analysis.map_ranges import position_range
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast.identity import by_identity
from fuseline.ir.provenance import node_names
from fuseline.passes.cleanup.inside_requirements import operations, require_inside


@dataclass(frozen=True)
class RequireMapsInsidePass(ModulePass):
    """Notes in the context what sizes must be for every map to lead inside.

    Raises FuselineError: E0107 for one that never does, E0306 for one that is not affine.
    """

    name = "require-maps-inside"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every structured op; nothing changes. Raises FuselineError: E0306 for a map of other than sums of
        loops and numbers, divided by numbers."""
        assert isinstance(ctx, CompilerContext)
        shapes = ShapeAnalysis(ctx.symbols)
        for inner in operations(op):
            if is_generic(inner):
                _look_at(ctx, StructuredOp(inner), shapes)


def _look_at(ctx: CompilerContext, view: StructuredOp, shapes: ShapeAnalysis) -> None:
    for operand, axis, expression in _computed(view):
        loops = view.loops(shapes)
        found = position_range(expression, loops)
        if found is None:
            node = node_names(view.op) or view.op.name
            raise FuselineError(
                "E0306",
                f"an indexing map uses {expression}",
                node=node,
                hint="write sums of loops and numbers, divided by numbers",
            )
        require_inside(ctx, view.op, (found.low, found.high), shapes.dims(view.operands[operand])[axis], loops)


def _computed(view: StructuredOp) -> Iterator[tuple[int, int, AffineExpr]]:
    """The operands and their axes at places that are no loop, with the place."""
    for operand, map_ in enumerate(view.maps):
        for axis, expression in _computed_axes(map_):
            yield operand, axis, expression


@by_identity
def _computed_axes(map_: AffineMap) -> tuple[tuple[int, AffineExpr], ...]:
    return tuple(
        [(axis, position) for axis, position in enumerate(map_.results) if type(position) is not AffineDimExpr]
    )


EXPORT = RequireMapsInsidePass
