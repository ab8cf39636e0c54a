"""A result that grew to whole tiles is cut where it is stored."""

from __future__ import annotations

from fuseline.analysis.structured import Kind
from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.rule import FusionRule, Merge, Shape


class SliceEpilogue(FusionRule):
    """
    convolution over 260 ──> relu over 260 ──> slice 257      =>      convolution + relu, of which 257 are stored

    For targets whose matrix units take whole tiles (`pad-to-tile`): what lies beyond the slice is computed in registers
    and dropped. Any other target computes what is stored, so that for it such a slice is an op that moves data.
    """

    name = "slice-epilogue"
    after = ("elementwise-cluster", "elementwise-epilogue", "row-chain")
    shape = Shape.CUT

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        """`reshape-between`, or legal behind a root; not applicable without whole tiles."""
        producer, consumer = merge.producer, merge.consumer
        if not merge.target.has_tiles:
            return NotApplicable()
        if any(node.kind is not Kind.SLICE for node in consumer.members) or any(
            read.producer in producer.inlined for read in merge.reads
        ):
            return NotApplicable()
        if merge.regrouped:
            return WhyNot("reshape-between", "a reshape regroups the dimensions", consumer.root.name)
        return Legal() if producer.reduces else NotApplicable()


EXPORT = SliceEpilogue
