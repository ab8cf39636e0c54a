"""widen-below-reshapes: a reshape of an argument that is widened becomes one of the argument, which costs nothing.

    expand(widen(x))      =>      widen(expand(x))

The widening stays as it is for its other readers: it is done where elements are loaded, in each of them
(`clone-reads`).
"""

from __future__ import annotations

from dataclasses import dataclass

from fuseline.ir.fast.direct import ops_of
from fuseline.passes.layout.rewriting.reshapes import is_reshape
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass
from fuseline.passes.layout.rewriting.widened_arguments import widen_below


@dataclass(frozen=True)
class WidenBelowReshapesPass(ScopedPass):
    """Moves reshapes above the widenings of arguments."""

    name = "widen-below-reshapes"

    def rewrite(self, scope: Scope) -> None:
        """In order, so that a chain of reshapes moves as one."""
        scope.lift_sizes()
        for inner in ops_of(scope.block):
            if is_reshape(inner):
                widen_below(scope, inner)
        scope.sweep()


EXPORT = WidenBelowReshapesPass
