"""The missed edges that cost most: what is stored for one and loaded again, and the launch that it takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

import msgspec

from fuseline.report.advice import advice
from fuseline.report.records import CompileRecord, Decision, DispatchRecord


class MissedGain(msgspec.Struct, frozen=True, kw_only=True):
    """Missed edges that are equal but for where they are, `count` of them.

    `producer` and `consumer` are ids, those of the first; `*_nodes` source nodes. `bytes` is what one of them stores;
    `saved_ns` what all would save if they were fused and nothing else changed: the store, the load, and a launch.
    `net_ns` is that less what fusing costs, where the cost model weighed it; None where it was refused before.
    """

    producer: str
    consumer: str
    producer_nodes: tuple[str, ...]
    consumer_nodes: tuple[str, ...]
    code: str
    detail: str
    count: int
    bytes: int
    saved_ns: float
    net_ns: float | None
    to_change: str = ""


def missed_gains(record: CompileRecord, *, bytes_per_ns: float, launch_ns: float, limit: int = 10) -> list[MissedGain]:
    """The `limit` groups of missed edges that cost most, most first. Edges between two dispatches count once for both;
    `bytes_per_ns` is how fast an intermediate is stored and loaded again (both ways together), `launch_ns` what a
    dispatch costs beside its work."""
    homes = {member.id: dispatch for dispatch in record.dispatches for member in dispatch.members}
    groups: dict[tuple[str, ...], list[tuple[Decision, int]]] = {}
    for decision, home in _first_edges(record, homes):
        groups.setdefault(_structure(decision, home), []).append((decision, _bytes_of(home)))
    gains = [_gain(edges, bytes_per_ns, launch_ns) for edges in groups.values()]
    return sorted(gains, key=lambda gain: -gain.saved_ns)[:limit]


def _first_edges(record: CompileRecord, homes: dict[str, DispatchRecord]) -> Iterator[tuple[Decision, DispatchRecord]]:
    """The missed edges that lead from one dispatch to another, the first of each pair, and the dispatch that writes."""
    seen: set[tuple[str, str]] = set()
    for decision in record.decisions:
        first, second = homes.get(decision.producer), homes.get(decision.consumer)
        if decision.verdict != "missed" or decision.arms or first is None or second is None or first is second:
            continue
        if (first.name, second.name) not in seen:
            seen.add((first.name, second.name))
            yield decision, first


def _structure(decision: Decision, home: DispatchRecord) -> tuple[str, ...]:
    return decision.code, decision.producer_op, decision.consumer_op, home.shape, home.root


def _gain(edges: list[tuple[Decision, int]], bytes_per_ns: float, launch_ns: float) -> MissedGain:
    first, stored = edges[0]
    saved = sum(2 * bytes_ / bytes_per_ns + launch_ns for _, bytes_ in edges)
    losses = [decision.numbers.get("predicted_loss_ns") for decision, _ in edges]
    return MissedGain(
        producer=first.producer,
        consumer=first.consumer,
        producer_nodes=first.producer_nodes,
        consumer_nodes=first.consumer_nodes,
        code=first.code,
        detail=first.detail,
        count=len(edges),
        bytes=stored,
        saved_ns=saved,
        net_ns=None if None in losses else -sum(loss for loss in losses if loss is not None),
        to_change=advice(first.code) or "",
    )


def _bytes_of(dispatch: DispatchRecord) -> int:
    """What the first result of a dispatch takes, from its shape (`1x56x56x64_f32`); sizes of the run count as 1."""
    sizes, _, element = dispatch.shape.rpartition("_")
    bits = re.search(r"\d+", element)
    elements = prod(int(size) for size in sizes.split("x") if size.isdecimal())
    return elements * (int(bits[0]) if bits else 64) // 8
