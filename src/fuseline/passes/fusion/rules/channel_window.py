"""A depthwise convolution behind the product over channels that makes its image: an inverted bottleneck's expansion."""

from __future__ import annotations

from fuseline.analysis.structured import Kind
from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.rule import FusionRule, Merge, roots_refusal, scratch_limit_refusal


class ChannelWindow(FusionRule):
    """
    expand(y, x, c) ──> [pad] ──> depthwise(y', x', c)        =>   for blocks of c: images of y, x lie in scratch

    Channels are all that both share; nothing is computed twice. The image would lie in memory otherwise, so that more
    of it may lie in scratch than of other values (`image_bytes_limit`). Where a product over the channels follows, too,
    and saves as many bytes, `root-chain` comes first: it leaves fewer dispatches.
    """

    name = "channel-window"
    after = ("root-chain",)

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        """`reshape-between`, `two-roots`, `roots-limit`, `scratch`, or legal with the bytes of scratch."""
        producer, consumer = merge.producer, merge.consumer
        at = consumer.root.name
        if not producer.reduces or consumer.root.kind is not Kind.DEPTHWISE or merge.alignment.exact:
            return NotApplicable()
        if merge.regrouped:
            return WhyNot("reshape-between", "a reshape regroups the dimensions", at)
        if producer.root.kind is not Kind.CONTRACTION or all(size == 1 for size in merge.shared.grid):
            return WhyNot("two-roots", f"{producer.root.name} and {at} are roots over different loops", at)
        return (
            roots_refusal(merge.shared, merge.target, at)
            or scratch_limit_refusal(merge.scratch, merge.target.image_bytes_limit, at)
            or Legal({"scratch_bytes": float(merge.scratch or 0), "grid_loops": float(len(merge.alignment.pairs))})
        )


EXPORT = ChannelWindow
