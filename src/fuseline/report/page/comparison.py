"""What differs between the two sides of a page, as its script reads it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import msgspec

from fuseline.report.difference import DispatchChange, difference, flips
from fuseline.report.page.inputs import Side
from fuseline.report.records import CompileRecord, Decision, predicted_seconds


def comparison(first: Side, second: Side) -> dict[str, Any]:
    """Statistics, dispatches and decisions that differ, and the time of both: of a whole run (measured where both
    were, else predicted). Changes and decisions that are the same but for where are one entry with a list."""
    found = difference(first.record, second.record)
    changes = _change_groups(found.changed)
    return {
        "statistics": [[key, *values] for key, values in found.statistics.items()],
        "appeared": found.appeared,
        "vanished": found.vanished,
        "changed": changes,
        "flips": _flip_groups(first.record, second.record),
        "total": _total(first, second),
    }


def _change_groups(changes: Sequence[DispatchChange]) -> list[dict[str, Any]]:
    """Changes that gain and lose the same kinds of ops, the most frequent first."""
    found: dict[Hashable, list[DispatchChange]] = {}
    for change in changes:
        found.setdefault(_kinds(change), []).append(change)
    groups = [
        {**dict(zip(("before", "after", "gained", "lost"), kinds, strict=True)), "changes": msgspec.to_builtins(alike)}
        for kinds, alike in ((_kinds(alike[0]), alike) for alike in found.values())
    ]
    return sorted(groups, key=lambda group: -len(group["changes"]))


def _kinds(change: DispatchChange) -> tuple[str, str, tuple[str, ...], tuple[str, ...]]:
    """The roots before and after, and the kinds of what came and went."""
    gained, lost = (tuple(sorted(name.split(" ")[0] for name in names)) for names in (change.gained, change.lost))
    return change.before.split(" [")[0], change.after.split(" [")[0], gained, lost


def _flip_groups(before: CompileRecord, after: CompileRecord) -> list[dict[str, Any]]:
    """Decisions that went from one verdict, rule and reason to another: first those that are another verdict, the most
    frequent first; `edges` are positions in the decisions of either side (-1: none)."""
    positions = [{id(decision): at for at, decision in enumerate(record.decisions)} for record in (before, after)]
    found: dict[Hashable, dict[str, Any]] = {}
    for flip in flips(before, after):
        ends = next(f"{one.producer_op} -> {one.consumer_op}" for one in (flip.was, flip.now) if one is not None)
        key = ends, _told(flip.was), _told(flip.now)
        group = found.setdefault(key, {**dict(zip(("ends", "was", "now"), key, strict=True)), "edges": []})
        group["edges"].append(
            [position.get(id(one), -1) for position, one in zip(positions, (flip.was, flip.now), strict=True)]
        )
    return sorted(
        found.values(), key=lambda group: (_verdict(group["was"]) == _verdict(group["now"]), -len(group["edges"]))
    )


def _told(decision: Decision | None) -> str:
    """The verdict, and the rule of a merge or the reason of what is none."""
    if decision is None:
        return "no candidate"
    return f"fused by {decision.rule}" if decision.verdict == "fused" else f"{decision.verdict}: {decision.code}"


def _verdict(told: str) -> str:
    return told.partition(" ")[0].rstrip(":")


def _total(first: Side, second: Side) -> dict[str, Any]:
    measured = bool(first.total_seconds and second.total_seconds)
    if measured:
        return {"measured": True, "seconds": [first.total_seconds, second.total_seconds]}
    return {"measured": False, "seconds": [predicted_seconds(first.record), predicted_seconds(second.record)]}
