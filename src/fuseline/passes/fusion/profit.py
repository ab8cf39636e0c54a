"""What a merge saves: bytes that no longer travel through memory, against work that is done again. Plain analysis, no
rule asks it anything; `parallelism.py` has what threads it leaves without work.

A merge saves the store of every value that nobody outside reads any more, and one load per value for each reader that
comes inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from fuseline.ir.costs import assumed_size
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.group_body import is_stored
from fuseline.passes.fusion.node import Read
from fuseline.passes.fusion.rule import Merge
from fuseline.passes.fusion.sliding import sliding_ns
from fuseline.passes.fusion.tile_cost import compute_ns, direct_ns, reread_ns

EVALUATION_NS = "evaluation_ns"
"""The number in a rule's `Legal` that says how much longer a producer takes where it is read than by itself,
nanoseconds of one thread."""

SHORT_RUNS_NS = "short_runs_ns"
"""The number in a rule's `Legal` that says how much longer rows take whose runs leave lanes empty, nanoseconds of one
thread."""

ANSWERED = (EVALUATION_NS, SHORT_RUNS_NS)
"""The numbers in a rule's `Legal` that say what takes longer."""

CONVERSION = "conversion"
"""The number in a rule's `Legal` that says that a producer only converts elements."""

QUANTIZES = "quantizes"
"""The number in a rule's `Legal` that says that a producer quantises an argument: `aggressive` has that in its reader
whatever it takes (measured 1.03 to 1.14 of the time where `default` does not)."""

LOSSES = {
    "streamed_ns": "operands would be read again for each block of the grid",
    "direct_ns": "a block of the filter is too little for minimal filtering",
    "sliding_ns": "a window would be met block by block",
    EVALUATION_NS: "the producer would be evaluated again",
    SHORT_RUNS_NS: "rows would be walked in runs that end before a vector does",
}
"""Why a merge would take longer, by the number that weighs most."""

NOTHING: Mapping[str, float] = MappingProxyType({})

SLACK = {"default": 0.02, "aggressive": 0.15}
"""By how much of its arithmetic a merge may be predicted slower than its parts."""

CONVERSION_SLACK = 0.08
"""The same, at least, of a root that converts its operands where it packs them: the copy in the wider type takes twice
the memory or more, and on machines that convert as they load it is what the time goes to."""


@dataclass(frozen=True, slots=True)
class Profit:
    """`bytes_saved`: loads and stores that vanish, in bytes per run."""

    bytes_saved: int


def weigh(merge: Merge, graph: FusionGraph) -> Profit:
    """What merging the two groups saves."""
    return weigh_reads(merge.reads, (merge.producer, merge.consumer), graph)


def weigh_reads(reads: Iterable[Read], merged: Sequence[Group], graph: FusionGraph) -> Profit:
    """What it saves that `reads` of one of `merged` from another stay inside."""
    inside = [former.member_set for former in merged]
    saved = 0
    for read in {id(read.value): read for read in reads}.values():
        size = assumed_size(graph.num_bytes(read.value))
        saved += size if is_stored(read, inside) else 2 * size
    return Profit(saved)


def unprofitable(
    group: Group, merge: Merge, graph: FusionGraph, bytes_saved: int, level: str,
    answered: Mapping[str, float] = NOTHING, *, converts: bool = False,
) -> WhyNot | None:  # fmt: skip
    """The refusal of a merge that would work longer than it saves, None where it pays.

    Args:
        answered: what the rule says that takes longer, by number (`ANSWERED`), nanoseconds of one thread. converts:
        whether what is evaluated is a conversion.
    """
    costs = merge.target.costs
    if not group.blocked and sum(answered.values()) <= bytes_saved / costs.stored_bytes_per_ns + costs.launch_ns:
        return None  # nothing is streamed
    merged = (merge.producer, merge.consumer)
    return costs_more(group, merged, graph, merge.target, bytes_saved, level, answered, converts=converts)


def costs_more(
    group: Group,
    merged: Sequence[Group],
    graph: FusionGraph,
    target: TargetDescription,
    bytes_saved: int,
    level: str,
    answered: Mapping[str, float] = NOTHING,
    *,
    converts: bool = False,
) -> WhyNot | None:
    """The refusal of one group in place of `merged` that would work longer than it saves, None where it pays.
    `converts`: what it evaluates are conversions (`CONVERSION_SLACK`)."""
    streamed = reread_ns(group, graph, target) - sum(reread_ns(former, graph, target) for former in merged)
    direct = direct_ns(group, target) - sum(direct_ns(former, target) for former in merged)
    sliding = sliding_ns(group, target) - sum(sliding_ns(former, target) for former in merged)
    costs = {"streamed_ns": streamed, "direct_ns": direct, "sliding_ns": sliding, EVALUATION_NS: 0.0, **answered}
    more = sum(costs.values())
    stays = bytes_saved if not sliding else 0  # measured: blocks of an image are in a cache either way
    saved = stays / target.costs.stored_bytes_per_ns + target.costs.launch_ns * (len(merged) - 1)
    slack = max(SLACK[level], CONVERSION_SLACK if converts else 0.0)
    if more - saved <= slack * compute_ns(group, target):
        return None
    numbers = {"predicted_loss_ns": more - saved, "saved_ns": saved, **costs}
    numbers = {name: float(round(number)) for name, number in numbers.items()}
    what = LOSSES[max(costs, key=lambda name: costs[name])]
    return WhyNot(
        "unprofitable", f"{what}: {more / 1000:,.1f} us more for {saved / 1000:,.1f} us saved", group.root.name, numbers
    )


def regrouping_loss_ns(
    groups: Sequence[Group], former: Sequence[Group], graph: FusionGraph, target: TargetDescription
) -> float:
    """How much longer `groups` take than `former` groups of the same nodes, nanoseconds of one thread; below 0 where
    they take less."""
    more = sum(_blocks_ns(group, graph, target) for group in groups)
    less = sum(_blocks_ns(group, graph, target) for group in former)
    return more - less + target.costs.launch_ns * (len(groups) - len(former))


def _blocks_ns(group: Group, graph: FusionGraph, target: TargetDescription) -> float:
    """What a group takes beside its arithmetic: to load and to store, and what is lost by going block by block."""
    moved = sum(assumed_size(graph.num_bytes(value)) for value in group.buffers())
    blocked = reread_ns(group, graph, target) + direct_ns(group, target) + sliding_ns(group, target)
    return blocked + moved / target.costs.stored_bytes_per_ns
