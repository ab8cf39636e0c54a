"""Why an op that no dispatch takes stays outside."""

from __future__ import annotations

from xdsl.dialects.func import CallOp, FuncOp

from fuseline.analysis.evaluation.program import lookup
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.graph import Node


def outside(node: Node) -> WhyNot:
    """The reason: the op is a loop of the program, or it runs on the host."""
    if isinstance(node.op, CallOp):
        callee = lookup(node.op, node.op.callee.root_reference.data)
        if isinstance(callee, FuncOp) and not callee.is_declaration:
            return WhyNot("loop", f"@{callee.sym_name.data} repeats steps of its own", node.name)
    return WhyNot("host-op", f"{node.op.name} runs on the host", node.name)
