"""The records of several rounds of fusion as one list: each decision says which round made it.

What a region of an earlier round holds was decided then, and the record of that stays, as long as the ids of its ops
do; 0 is the round of regions that came with the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from fuseline.passes.fusion.arms_merging import REGION
from fuseline.passes.fusion.starting_groups import StartingGroup
from fuseline.report.records import Decision

_Edge = tuple[str, str]


def with_earlier(
    earlier: Iterable[Decision], found: Iterable[Decision], start: Sequence[StartingGroup], number: int
) -> Iterator[Decision]:
    """The decisions `found` in round `number`, with those of `earlier` rounds in place of what it only took over."""
    fused = {_edge(one): one for one in earlier if one.verdict == "fused"}
    met = set[_Edge]()
    for one in found:
        met.add(_edge(one))
        known = fused.get(_edge(one)) if one.rule == REGION else None
        yield known or replace(one, round=0 if one.rule == REGION else number)
    region_of = {node.name: region for region in start for node in region.nodes}
    for edge, one in fused.items():
        home = region_of.get(one.producer)
        if one.arms and edge not in met and home is not None and home is region_of.get(one.consumer):
            yield one


def _edge(decision: Decision) -> _Edge:
    return decision.producer, decision.consumer
