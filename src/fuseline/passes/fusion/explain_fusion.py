"""Say what fusion would decide about every candidate merge, as remarks; the IR stays as it is.

// remark: [elementwise-epilogue] consumer-reduces: an epilogue is all-parallel
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.context import CompilerContext
from fuseline.ir.functions import functions
from fuseline.passes.dispatch.legality import TargetVeto
from fuseline.passes.fusion.driver import partition
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.rule import FusionRule
from fuseline.passes.fusion.user_rules import rules_asked
from fuseline.report.records import Decision


def remark(decision: Decision) -> str:
    """One decision as one line: rule, code, detail."""
    detail = f": {decision.detail}" if decision.detail else ""
    return f"remark: [{decision.rule}] {decision.code}{detail}"


@dataclass(frozen=True)
class ExplainFusionPass(ModulePass):
    """Say what fusion would decide, as remarks. The options are those of `form-dispatch-regions`."""

    name = "explain-fusion"
    rules: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    more_rules: tuple[FusionRule, ...] = field(default=(), metadata={"option": False})

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Add a remark per decision to `ctx.records.notes`. Raises what `rules_asked` raises."""
        assert isinstance(ctx, CompilerContext)
        chosen = rules_asked(ctx.target.rules, self.more_rules, self.rules, self.without, self.name)
        taken: dict[str, int] = {}
        for function in functions(op):
            graph = FusionGraph(function.body.block, ShapeAnalysis(ctx.symbols), taken)
            ctx.records.notes.extend(
                remark(decision)
                for decision in partition(
                    graph,
                    chosen.rules,
                    ctx.target,
                    veto=TargetVeto(ctx.legal, graph.shapes),
                    joins=chosen.joins,
                ).decisions
            )


EXPORT = ExplainFusionPass
