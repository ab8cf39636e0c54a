"""Decisions that are the same but for where they were made: one row of the report, with how many there are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fuseline.report.records import CompileRecord, Decision

_ID = re.compile(r"\b(\w+)\.[0-9a-f]{8}(-\d+)?\b")
_NUMBER = re.compile(r"\d[\d,.]*")


def decision_groups(record: CompileRecord) -> list[dict[str, Any]]:
    """Groups of decisions of one verdict, rule, reason and kind of ops, whatever their sizes: those that were missed
    first, the largest first. `edges` are positions in `record.decisions`; `gain` is what they would save together, in
    nanoseconds, where that was weighed."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for number, decision in enumerate(record.decisions):
        found.setdefault(_structure(decision), []).append(number)
    groups = [_group(record.decisions, edges) for edges in found.values()]
    return sorted(groups, key=lambda group: (_RANK.get(group["verdict"], 9), -len(group["edges"]), group["code"]))


_RANK = {"missed": 0, "side-by-side": 1, "superseded": 2, "fused": 3}


def _structure(decision: Decision) -> tuple[Any, ...]:
    words = _NUMBER.sub("#", _ID.sub(r"\1", decision.detail))
    ends = decision.producer_op, decision.consumer_op
    return decision.verdict, decision.rule, decision.code, decision.arms, words, ends


def _group(decisions: Sequence[Decision], edges: list[int]) -> dict[str, Any]:
    first = decisions[edges[0]]
    return {
        "verdict": first.verdict,
        "rule": first.rule,
        "code": first.code,
        "ends": f"{first.producer_op} {'beside' if first.arms else '->'} {first.consumer_op}",
        "detail": first.detail,
        "edges": edges,
        "gain": sum(_gain_ns(decisions[number]) for number in edges),
    }


def _gain_ns(decision: Decision) -> float:
    """What a merge was predicted to save, below zero where it would cost; 0 where it was not weighed."""
    return -decision.numbers.get("predicted_loss_ns", 0.0)
