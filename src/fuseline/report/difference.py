"""What changed between two compiles: statistics, dispatches that appeared or vanished, decisions that flipped."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from fuseline.report.dispatches import member_nodes
from fuseline.report.explain import decision_line
from fuseline.report.records import CompileRecord, Decision, DispatchRecord
from fuseline.report.statistics import statistics_json


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """The differences of B against A. A dispatch is matched by its root op and source nodes, a decision by rule and edge."""

    statistics: dict[str, tuple[Any, Any]]
    appeared: list[str]
    vanished: list[str]
    decisions: list[str]

    @property
    def empty(self) -> bool:
        """Whether nothing differs."""
        return not (self.statistics or self.appeared or self.vanished or self.decisions)


def difference(before: CompileRecord, after: CompileRecord) -> Difference:
    """What `after` has that `before` has not, and the other way round. What one side did not save (dispatches, decisions) is not compared."""
    known = bool(before.dispatches) and bool(after.dispatches)
    old, new = (_labels(before), _labels(after)) if known else (Counter[str](), Counter[str]())
    return Difference(
        statistics=_changed_statistics(before, after),
        appeared=sorted((new - old).elements()),
        vanished=sorted((old - new).elements()),
        decisions=_changed_decisions(before, after),
    )


def _labels(record: CompileRecord) -> Counter[str]:
    return Counter(_label(dispatch) for dispatch in record.dispatches)


def _label(dispatch: DispatchRecord) -> str:
    return f"{dispatch.root} [{', '.join(sorted(member_nodes(dispatch)))}]"


def _changed_statistics(before: CompileRecord, after: CompileRecord) -> dict[str, tuple[Any, Any]]:
    old, new = _flat(statistics_json(before)), _flat(statistics_json(after))
    keys = [key for key in dict.fromkeys((*old, *new)) if not key.startswith("phase_seconds")]
    return {key: (old.get(key), new.get(key)) for key in keys if old.get(key) != new.get(key)}


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in values.items():
        out |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return out


def _edges(record: CompileRecord) -> dict[tuple[object, ...], Decision]:
    return {(d.rule, d.producer_nodes or d.producer, d.consumer_nodes or d.consumer): d for d in record.decisions}


def _changed_decisions(before: CompileRecord, after: CompileRecord) -> list[str]:
    if not before.decisions or not after.decisions:
        return []
    old, new = _edges(before), _edges(after)
    lines: list[str] = []
    for key in dict.fromkeys((*old, *new)):
        was, now = old.get(key), new.get(key)
        if was is None and now is not None:
            lines.append(f"+ {decision_line(now)}")
        elif now is None and was is not None:
            lines.append(f"- {decision_line(was)}")
        elif was is not None and now is not None and (was.verdict, was.code) != (now.verdict, now.code):
            lines += [f"- {decision_line(was)}", f"+ {decision_line(now)}"]
    return lines


def difference_lines(found: Difference) -> list[str]:
    """The differences as text, empty for none."""
    lines = [f"{key}: {old} -> {new}" for key, (old, new) in found.statistics.items()]
    lines += [f"+ dispatch {label}" for label in found.appeared]
    lines += [f"- dispatch {label}" for label in found.vanished]
    return lines + found.decisions
