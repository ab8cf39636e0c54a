"""Whether a pass loses an idiom: what verify-each asks beside the rules of the ops.

A rewrite that disturbs a body keeps its values, so that no test of values notices; the op then takes the square of the
time.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp

from fuseline.analysis.idioms import idiom_of, name_of, near_idiom
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.analysis.structured_op import extents_of
from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim
from fuseline.ir.provenance import provenance


class IdiomWatch:
    """The idioms of a program so far, by the source nodes that they are of."""

    def __init__(self, module: ModuleOp, ctx: CompilerContext) -> None:
        self.ctx = ctx
        self.idioms = self._idioms(module)

    def check(self, module: ModuleOp) -> None:
        """Raises E0901 naming a node whose op was an idiom at the last look, and now nearly is."""
        now = self._idioms(module)
        lost = self.idioms - now
        for view, extents in self._reductions(module) if lost else ():
            near = near_idiom(view, extents)
            node = next((node for node in provenance(view.op) if near is not None and (near.name, node) in lost), None)
            if near is not None and node is not None:
                raise FuselineError("E0901", f"the {near.name} is lost: {near.missing}", node=node)
        self.idioms = now

    def _idioms(self, module: ModuleOp) -> frozenset[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        for view, extents in self._reductions(module):
            idiom = idiom_of(view, extents)
            found.update((name_of(idiom), node) for node in provenance(view.op) if idiom is not None)
        return frozenset(found)

    def _reductions(self, module: ModuleOp) -> Iterator[tuple[StructuredOp, tuple[Dim, ...]]]:
        """The reductions of a program with the extents of their loops; one that no operand spells is far from all."""
        shapes = ShapeAnalysis(self.ctx.symbols)
        for op in module.walk():
            view = StructuredOp(op) if is_generic(op) else None
            if view is not None and view.reduction:
                sizes = extents_of(view.maps, [shapes.dims(value) for value in view.operands], view.rank)
                if None not in sizes:
                    yield view, view.loops(shapes)
