"""collapse-dims: loops that always appear side by side are one loop.

    exp over (4, 6, 8) ──> sum over 8      =>      exp over (24, 8) ──> sum over 8

Loops merge only where all ops that exchange the tensors can see the dimensions as one, so that a reshape is left at
arguments, constants and results alone, where it is free, or cancels one that was there. A function in which no reshape
keeps two ops apart is left as it is, unless the pass is told otherwise: fewer loops to traverse and to match are worth
less there than looking for them takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from fuseline.analysis.structured import is_generic
from fuseline.ir.fast.direct import ops_of
from fuseline.ir.rounds import rounds
from fuseline.passes.layout.rewriting.kept_apart import reshapes_between
from fuseline.passes.layout.rewriting.loops import collapse_loops
from fuseline.passes.layout.rewriting.loops_together import LoopsTogether
from fuseline.passes.layout.rewriting.reshapes import is_reshape, merge_chain
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass


@dataclass(frozen=True)
class CollapseDimsPass(ScopedPass):
    """Option `everywhere`: merge loops whether or not a reshape is in the way of fusion."""

    name = "collapse-dims"
    everywhere: bool = False

    def rewrite(self, scope: Scope) -> None:
        """Collapse until no loops are left that may be one; as many rounds as there are loops, at most."""
        scope.lift_sizes()
        scope.sweep()
        if not self.everywhere and next(reshapes_between(scope), None) is None:
            return
        loops = sum(len(op.iterator_types) for op in ops_of(scope.block) if is_generic(op))
        for _ in rounds(
            "collapsing loops", most=loops
        ):  # a reshape that cancelled may have kept others apart; each round leaves fewer loops
            if not _collapse(scope):
                break
            _cancel(scope)


def _collapse(scope: Scope) -> bool:
    """Merge loops once; whether there were any."""
    together = LoopsTogether(scope, [inner for inner in ops_of(scope.block) if is_generic(inner)])
    found = [(op, groups) for op in together.views if (groups := together.groups(op))]
    for op, groups in found:
        for group in reversed(groups):
            op = collapse_loops(scope, op, group)
    return bool(found)


def _cancel(scope: Scope) -> None:
    for inner in ops_of(scope.block):
        if is_reshape(inner):
            merge_chain(scope, inner)
    scope.sweep()


EXPORT = CollapseDimsPass
