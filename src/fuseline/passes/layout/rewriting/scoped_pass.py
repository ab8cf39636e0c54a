"""A pass that rewrites one function after the other, each in a `Scope`; the nodes that vanish are recorded."""

from __future__ import annotations

from abc import abstractmethod

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fuseline.ir.context import CompilerContext
from fuseline.ir.functions import functions
from fuseline.passes.layout.rewriting.scope import Ledger, Scope


class ScopedPass(ModulePass):
    """What is left to a pass is `rewrite`."""

    def apply(self, ctx: CompilerContext, op: ModuleOp) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Rewrite every function that has a body."""
        ledger = Ledger(op)
        for function in functions(op):
            self.rewrite(Scope(function, ctx))
        ledger.close(ctx, self.name)

    @abstractmethod
    def rewrite(self, scope: Scope) -> None:
        """Rewrite the function of `scope`."""
