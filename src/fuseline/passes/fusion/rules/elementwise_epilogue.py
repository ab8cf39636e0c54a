"""Elementwise work on the result of a root op, done before the result is stored."""

from __future__ import annotations

from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.rule import FusionRule, Merge


class ElementwiseEpilogue(FusionRule):
    """
    root op ──transient──> elementwise op      =>      root op + epilogue

    The consumer's loops must be the root's parallel loops, one to one (a transposed write is fine); its other operands
    are read once per point.
    """

    name = "elementwise-epilogue"

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        """`reshape-between`, `indexing-map`, `broadcast`, or legal where the loops of both are the same."""
        producer, consumer = merge.producer, merge.consumer
        if not producer.reduces or consumer.reduces or producer.blocked:
            return NotApplicable()
        if merge.regrouped:
            return WhyNot("reshape-between", "a reshape regroups the root's dimensions", consumer.root.name)
        alignment = merge.alignment
        if alignment.demoted_producer and producer.heavy:
            return WhyNot(
                "indexing-map", "the reads do not map the root's parallel loops one to one", consumer.root.name
            )
        if alignment.demoted_consumer and producer.heavy:
            return WhyNot("broadcast", "the consumer has parallel loops that the root lacks", consumer.root.name)
        return Legal() if alignment.exact else NotApplicable()


EXPORT = ElementwiseEpilogue
