"""What changed between two compiles: statistics, dispatches that appeared, vanished or changed, and the decisions that
did it.

Ops are matched by structural id, by kind and source nodes, and by structure (`matched_ops.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from fuseline.report.explain import decision_line
from fuseline.report.matched_ops import bare, matched_ops
from fuseline.report.records import CompileRecord, Decision, DispatchRecord, MemberRecord, TunedChange
from fuseline.report.statistics import statistics_json

Key: TypeAlias = str
"""What an op is known by on both sides."""

_SHOWN = 4
"""Nodes that a line about a search names."""

_KNOWN_OF_A_COMPILE = "bytes_moved"

Members: TypeAlias = "frozenset[Key]"


class DispatchChange(msgspec.Struct, frozen=True, kw_only=True):
    """A dispatch that lost or gained ops, and the decisions about those that differ."""

    before: str
    after: str
    gained: list[str]
    lost: list[str]
    decisions: list[str] = []


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """The differences of B against A. `appeared` and `vanished` dispatches share no op with one that is left on the
    other side. `tuned`: what a search changed, and what each change gained, of a side that follows its plan."""

    statistics: dict[str, tuple[Any, Any]]
    appeared: list[str]
    vanished: list[str]
    changed: list[DispatchChange] = []
    decisions: list[str]
    tuned: list[str] = []

    @property
    def empty(self) -> bool:
        """Whether nothing differs."""
        found = (self.statistics, self.appeared, self.vanished, self.changed, self.decisions, self.tuned)
        return not any(found)


def difference(before: CompileRecord, after: CompileRecord) -> Difference:
    """What `after` has that `before` has not, and the other way round. What one side did not save (dispatches,
    decisions) is not compared."""
    sides = _Sides(before, after)
    known = bool(before.dispatches) and bool(after.dispatches)
    old, new = (sides.dispatches(before), sides.dispatches(after)) if known else ([], [])
    pairs, vanished, appeared = _matched(old, new)
    flipped = sides.flipped()
    return Difference(
        statistics=_changed_statistics(before, after),
        appeared=sorted(sides.label(new[i]) for i in appeared),
        vanished=sorted(sides.label(old[i]) for i in vanished),
        changed=[sides.change(old[i], new[j], flipped) for i, j in pairs],
        decisions=[line for flip in flipped for line in flip.lines],
        tuned=_tuned(before, after),
    )


def flips(before: CompileRecord, after: CompileRecord) -> list[Flip]:
    """The decisions that one side has and the other has not, or has with another verdict, rule or reason."""
    return _Sides(before, after).flipped()


def _tuned(before: CompileRecord, after: CompileRecord) -> list[str]:
    """The choices of a search that one side has and the other has not."""
    sides = [{(change.knob, change.choice): change for change in record.tuned} for record in (before, after)]
    gone, new = ([change for key, change in mine.items() if key not in other] for mine, other in (sides, sides[::-1]))
    return [f"- {tuned_line(change)}" for change in gone] + [f"+ {tuned_line(change)}" for change in new]


def tuned_line(change: TunedChange) -> str:
    """What a search chose, and what that gained by itself.

    >>> tuned_line(TunedChange(knob="dedup", choice="none", detail="how much dispatches share code", gain=0.012))
    'tuned dedup = none: how much dispatches share code; gains 1.20 %'
    """
    gained = f"; {'gains' if change.gain > 0 else 'loses'} {100 * abs(change.gain):.2f} %" if change.gain else ""
    where = (
        f" [{', '.join(change.nodes[:_SHOWN])}{', ..' if len(change.nodes) > _SHOWN else ''}]" if change.nodes else ""
    )
    what = f": {change.detail}" if change.detail else ""
    return f"tuned {change.knob} = {change.choice}{what}{gained}{where}"


# statistics -----------------------------------------------------------------------------------------------------------


def _changed_statistics(before: CompileRecord, after: CompileRecord) -> dict[str, tuple[Any, Any]]:
    """What differs; a statistic that one side lacks is None there, unless that side knows little at all (a plan)."""
    old, new = flat_statistics(before), flat_statistics(after)
    partial = _KNOWN_OF_A_COMPILE not in old or _KNOWN_OF_A_COMPILE not in new
    known = [key for key in old if key in new] if partial else dict.fromkeys((*old, *new))
    keys = [key for key in known if not key.startswith("phase_seconds")]
    return {key: (old.get(key), new.get(key)) for key in keys if old.get(key) != new.get(key)}


def flat_statistics(record: CompileRecord) -> dict[str, Any]:
    """The statistics by dotted names; seconds are left out where nothing else is known."""
    return _flat(statistics_json(record)) if record.statistics else {}


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in values.items():
        out |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value}
    return out


# dispatches -----------------------------------------------------------------------------------------------------------


class _Dispatch(msgspec.Struct, frozen=True):
    record: DispatchRecord
    members: Members


class Flip(msgspec.Struct, frozen=True):
    """A decision that differs: the ends of its edge, what it was and what it is (None: there is none)."""

    ends: Members
    was: Decision | None
    now: Decision | None

    @property
    def lines(self) -> list[str]:
        """What it was, then what it is."""
        sides = ("-", self.was), ("+", self.now)
        return [f"{sign} {decision_line(decision)}" for sign, decision in sides if decision is not None]


class _Sides:
    """Both records under keys that mean the same op on either side."""

    def __init__(self, before: CompileRecord, after: CompileRecord) -> None:
        self.before, self.after = before, after
        self._matched = matched_ops(before, after)
        self.known: dict[Key, MemberRecord] = {}
        for record in (before, after):
            for member in (member for dispatch in record.dispatches for member in dispatch.members):
                known = self.known.setdefault(self.key(record, member.id), member)
                if member.nodes and not known.nodes:
                    self.known[self.key(record, member.id)] = member

    def key(self, record: CompileRecord, id: str) -> Key:
        return bare(id) if record is self.before else self._matched[bare(id)]

    def dispatches(self, record: CompileRecord) -> list[_Dispatch]:
        return [_Dispatch(d, frozenset(self.key(record, m.id) for m in d.members)) for d in record.dispatches]

    def label(self, dispatch: _Dispatch) -> str:
        """The root op and the source nodes, from whichever side knows them."""
        members = [self.known[key] for key in sorted(dispatch.members)]
        names = sorted({name for member in members for name in (member.nodes or (member.id,))})
        return f"{dispatch.record.root} [{', '.join(names)}]"

    def change(self, old: _Dispatch, new: _Dispatch, flips: Iterable[Flip]) -> DispatchChange:
        gained, lost = new.members - old.members, old.members - new.members
        touching = [
            line
            for flip in flips
            if flip.ends & (gained | lost) and flip.ends & (old.members | new.members)
            for line in flip.lines
        ]
        return DispatchChange(
            before=self.label(old),
            after=self.label(new),
            gained=self._names(gained),
            lost=self._names(lost),
            decisions=touching,
        )

    def _names(self, keys: Iterable[Key]) -> list[str]:
        found = [self.known[key] for key in sorted(keys)]
        return [f"{member.kind or 'op'} {' '.join(member.nodes) or member.id}" for member in found]

    def flipped(self) -> list[Flip]:
        """The decisions that one side has and the other has not, or has with another verdict."""
        if not self.before.decisions or not self.after.decisions:
            return []
        old, new = self._edges(self.before), self._edges(self.after)
        return [
            flip for key in dict.fromkeys((*old, *new)) if (flip := _flip(key, old.get(key), new.get(key))) is not None
        ]

    def _edges(self, record: CompileRecord) -> dict[tuple[Key, Key], Decision]:
        """The decisions by edge; those about groups that are no neighbours (arms) by their roots, where no edge joins
        the two."""
        found: dict[tuple[Key, Key], Decision] = {}
        for d in sorted(record.decisions, key=lambda d: d.arms):
            found.setdefault((self.key(record, d.producer), self.key(record, d.consumer)), d)
        return found


def _flip(ends: tuple[Key, Key], was: Decision | None, now: Decision | None) -> Flip | None:
    told = (was.verdict, was.code, was.rule) if was is not None else None
    if told == ((now.verdict, now.code, now.rule) if now is not None else None):
        return None
    return Flip(frozenset(ends), was, now)


def _matched(old: Sequence[_Dispatch], new: Sequence[_Dispatch]) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Pairs of dispatches that differ in some ops, and what is left on either side; equal ones are in none."""
    waiting = Counter(dispatch.members for dispatch in new)
    left_old = [i for i, dispatch in enumerate(old) if not _take(waiting, dispatch.members)]
    left_new = [j for j, dispatch in enumerate(new) if _take(waiting, dispatch.members)]
    homes: dict[Key, list[int]] = {}
    for j in left_new:
        for key in new[j].members:
            homes.setdefault(key, []).append(j)
    overlaps = Counter((i, j) for i in left_old for key in old[i].members for j in homes.get(key, ()))
    pairs: list[tuple[int, int]] = []
    for (i, j), _ in sorted(overlaps.items(), key=lambda item: (-item[1], item[0])):
        if all(i != a and j != b for a, b in pairs):
            pairs.append((i, j))
    paired_old, paired_new = {i for i, _ in pairs}, {j for _, j in pairs}
    return sorted(pairs), [i for i in left_old if i not in paired_old], [j for j in left_new if j not in paired_new]


def _take(waiting: Counter[Members], members: Members) -> bool:
    if waiting[members] <= 0:
        return False
    waiting[members] -= 1
    return True


# text -----------------------------------------------------------------------------------------------------------------


def difference_lines(found: Difference) -> list[str]:
    """The differences as text, empty for none."""
    lines = [f"{key}: {old} -> {new}" for key, (old, new) in found.statistics.items()]
    lines += [f"+ dispatch {label}" for label in found.appeared]
    lines += [f"- dispatch {label}" for label in found.vanished]
    shown: set[str] = set()
    for change in found.changed:
        lines += _change_lines(change)
        shown.update(change.decisions)
    return lines + [line for line in found.decisions if line not in shown] + found.tuned


def _change_lines(change: DispatchChange) -> list[str]:
    ops = [*(f"    + {name}" for name in change.gained), *(f"    - {name}" for name in change.lost)]
    return [
        f"~ dispatch {change.before} -> {change.after}",
        *ops,
        *(f"    because {line}" for line in change.decisions),
    ]
