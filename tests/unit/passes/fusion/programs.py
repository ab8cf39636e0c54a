"""Programs, and how fusion partitions them."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.driver import Partition, partition
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.rule import FusionRule, builtin_rules
from fuseline.report.records import Decision
from tests.graphs import program

TARGET = TargetDescription("test", threads=2)


def nodes_of(p: program.Program) -> list[Node]:
    """The nodes of a program, in its order."""
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    return sorted(graph.nodes, key=lambda node: node.position)


class Program(program.Program):
    """A program that fusion looks at."""

    def partition(
        self, target: TargetDescription = TARGET, rules: Sequence[FusionRule] | None = None, level: str = "default"
    ) -> Partition:
        """The partition of the function."""
        graph = FusionGraph(self.function.body.block, ShapeAnalysis())
        return partition(graph, rules if rules is not None else builtin_rules(), target, level)

    def decisions(
        self, target: TargetDescription = TARGET, level: str = "default", rules: Sequence[FusionRule] | None = None
    ) -> dict[tuple[str, str], Decision]:
        """The record of every edge, by the kinds of its ends."""
        return {(d.producer_op, d.consumer_op): d for d in self.partition(target, rules, level).decisions}
