"""Merging softmaxes over loops of any length: those that are still in pieces become one group each, where the target
can stream them."""

from __future__ import annotations

from fuseline.passes.fusion.decision import Legal, WhyNot
from fuseline.passes.fusion.edge_records import Outcome
from fuseline.passes.fusion.pair_merging import PairMerging
from fuseline.passes.fusion.parallelism import loses_parallelism
from fuseline.passes.fusion.profit import costs_more, weigh_reads
from fuseline.passes.fusion.streamed_loops import OnlineReductionNodes
from fuseline.passes.fusion.streamed_softmax import (
    STREAMED_SOFTMAX,
    Candidate,
    candidates,
    illegal,
    scores_of,
)


class SoftmaxMerging(PairMerging):
    """Takes the parts of a softmax and its product together."""

    def _stream_softmaxes(self) -> None:
        """Softmaxes that are still in pieces become one group each, where the target can stream them; then the usual
        merges go on."""
        for stream in self.streams:
            self._stream_softmax(stream)
        self._drain()

    def _stream_softmax(self, stream: OnlineReductionNodes) -> None:
        if STREAMED_SOFTMAX not in self.joins:
            return
        scores = scores_of(stream)
        for candidate in candidates(
            stream,
            [self.group_of[node] for node in stream.nodes],
            self.group_of[scores] if scores is not None else None,
        ):
            outcome = self._judge_stream(candidate)
            for read in candidate.reads:
                assert read.producer is not None
                self.edge_words[read.producer, read.consumer] = outcome
            if outcome.group is not None and self._fueled(outcome.rule, stream.nodes):
                self._replace(candidate.joined, outcome.group)
                self._examine_around(outcome.group)
                return

    def _judge_stream(self, candidate: Candidate) -> Outcome:
        """Whether the parts of a softmax may be one group, and whether that pays."""
        groups, group = candidate.joined, candidate.group
        cycle = self._cycle(groups)
        if cycle is not None:
            return Outcome("structure", cycle)
        banned = self.forbidding.together(groups)
        if banned is not None:
            return banned
        saved = weigh_reads(candidate.reads, groups, self.graph).bytes_saved
        refusal = (
            illegal(candidate, self.target) or self.limits.refusal(group) or self._stream_costs_time(candidate, saved)
        )
        if refusal is not None:
            return Outcome(STREAMED_SOFTMAX, refusal)
        return Outcome(
            STREAMED_SOFTMAX,
            Legal({"scratch_bytes": float(group.scratch_bytes or 0), "grid_loops": float(len(group.grid))}),
            group,
            saved,
        )

    def _stream_costs_time(self, candidate: Candidate, bytes_saved: int) -> WhyNot | None:
        groups, group = candidate.joined, candidate.group
        serial = loses_parallelism(group, groups, self.graph, self.target)
        return serial or costs_more(group, groups, self.graph, self.target, bytes_saved, self.level)
