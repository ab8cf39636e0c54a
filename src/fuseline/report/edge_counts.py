"""How many edges of a graph fusion took, and what it did about the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from fuseline.report.records import Decision


class EdgeCounts(NamedTuple):
    """Decisions by verdict, as every report counts them: edges that were `fused` or `superseded`, what was `missed` by
    reason, and pairs of groups that no edge joins but one launch runs `side_by_side`."""

    fused: int
    superseded: int
    missed: dict[str, int]
    side_by_side: int


def count_edges(decisions: Collection[Decision]) -> EdgeCounts:
    """The one count of what was decided."""
    verdicts = Counter((decision.verdict, decision.arms) for decision in decisions)
    missed = Counter(decision.code for decision in decisions if decision.verdict == "missed")
    superseded = verdicts["superseded", False] + verdicts["superseded", True]
    beside = verdicts["fused", True] + len(_only_beside(decisions))
    return EdgeCounts(verdicts["fused", False], superseded, dict(missed.most_common()), beside)


def _only_beside(decisions: Collection[Decision]) -> set[tuple[str, str]]:
    """The arms of one dispatch that no decision put together, but that stayed two."""
    found = {
        verdict: {(d.producer, d.consumer) for d in decisions if d.arms and d.verdict == verdict}
        for verdict in ("fused", "side-by-side")
    }
    return found["side-by-side"] - found["fused"]
