"""What one plan decides otherwise than another, as changes that are made one by one.

    from   [a b] [c d] [e] [f]        a b        [a] [b]          split
    to     [a] [b] [c] [d e] [f]      c d e      [c] [d e]        regroup

A change is about the ops that groups of both sides connect, so that each program between the two has groups of the
first or of the second plan and no others. Splits come first and joins last: a program with only splits made, or only
joins left to make, has no cycle that a plan does not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fuseline.analysis.disjoint_sets import DisjointSets
from fuseline.compile_options import CHOICES, CompileOptions
from fuseline.passes.fusion.plan import Ids
from fuseline.passes.fusion.tuned_choices import TunedChoices

GROUPING = ("split", "regroup", "join")
"""The kinds of changes that are about groups, in the order in which they are made."""

Choice = tuple[str, str]
"""A choice of a compile: the option, and which part of it (a rule, a class of kernels; empty for the whole)."""

_LEVELS = CHOICES["fusion"]


@dataclass(frozen=True)
class PlanState:
    """What a compile follows: the groups of all ops, sets of ops that stay apart, and choices beside them."""

    groups: frozenset[Ids]
    forbid: frozenset[Ids] = frozenset()
    choices: Mapping[Choice, Any] = field(default_factory=dict[Choice, Any])


@dataclass(frozen=True)
class PlanChange:
    """One decision of a plan against another. `kind`: `split`, `join` or `regroup` of groups (`before`, `after`),
    `apart` or `may-meet` of a set of ops that only one of the plans forbids to meet (`after`, `before`), or `choice`
    (`choice`, of which the values were `old` and are `new`; None: nothing is said)."""

    kind: str
    before: tuple[Ids, ...] = ()
    after: tuple[Ids, ...] = ()
    choice: Choice = ("", "")
    old: Any = None
    new: Any = None

    def on(self, state: PlanState) -> PlanState:
        """The state with this change made."""
        if self.kind in GROUPING:
            return replace(state, groups=(state.groups - set(self.before)) | set(self.after))
        if self.kind in ("apart", "may-meet"):
            return replace(state, forbid=(state.forbid - set(self.before)) | set(self.after))
        return replace(state, choices={**state.choices, self.choice: self.new})

    @property
    def ops(self) -> tuple[str, ...]:
        """The ids that it is about."""
        return tuple(dict.fromkeys(id for ids in (*self.before, *self.after) for id in ids))


def plan_changes(before: PlanState, after: PlanState) -> list[PlanChange]:
    """What leads from one state to the other, of the same ops. What lets ops meet comes before groups, what keeps them
    from it behind them; choices of kernels are the last."""
    forbid = [PlanChange("may-meet", before=(ids,)) for ids in sorted(before.forbid - after.forbid)]
    forbids = [PlanChange("apart", after=(ids,)) for ids in sorted(after.forbid - before.forbid)]
    choices = list(_choices(before.choices, after.choices))
    first = [one for one in choices if _lets_meet(one)]
    last = [one for one in choices if one not in first]
    regions = sorted(_regions(before.groups, after.groups), key=lambda one: (GROUPING.index(one.kind), one.before))
    return [*forbid, *first, *regions, *forbids, *last]


def _regions(before: frozenset[Ids], after: frozenset[Ids]) -> Iterator[PlanChange]:
    homes = DisjointSets((ids[0], id) for ids in sorted(before | after) for id in ids)
    found: dict[str, tuple[list[Ids], list[Ids]]] = {}
    for side, groups in enumerate((before - after, after - before)):
        for ids in sorted(groups):
            found.setdefault(homes.of(ids[0]), ([], []))[side].append(ids)
    for old, new in found.values():
        yield PlanChange(_kind(old, new), tuple(old), tuple(new))


def _kind(old: list[Ids], new: list[Ids]) -> str:
    return "split" if len(old) == 1 else "join" if len(new) == 1 else "regroup"


# choices --------------------------------------------------------------------------------------------------------------

_PARTS = ("without_rules", "kernels")


def said_by(tuned: TunedChoices | None) -> set[Choice]:
    """What a plan says beside groups."""
    given = {} if tuned is None else tuned.options
    whole = {(name, "") for name in given if name not in _PARTS}
    return whole | {(name, part) for name in _PARTS for part in given.get(name, ())}


def choices_of(options: CompileOptions, said: Iterable[Choice]) -> dict[Choice, Any]:
    """The choices `said` as options have them; None: a rule that is not left out, a kernel of which nothing is
    asked."""
    return {choice: _value(options, *choice) for choice in said}


def _value(options: CompileOptions, name: str, part: str) -> Any:
    if name == "without_rules":
        return part in options.without_rules or None
    return options.kernels.get(part) if name == "kernels" else getattr(options, name)


def with_choices_of(options: CompileOptions, choices: Mapping[Choice, Any]) -> CompileOptions:
    """The options with these choices in place of their own."""
    whole = {name: value for (name, part), value in choices.items() if not part}
    rules = [name for name in options.without_rules if ("without_rules", name) not in choices]
    kernels = {name: text for name, text in options.kernels.items() if ("kernels", name) not in choices}
    rules += _parts("without_rules", choices)
    return replace(options, **whole, without_rules=rules, kernels=kernels | _parts("kernels", choices))


def as_tuned(choices: Mapping[Choice, Any]) -> TunedChoices | None:
    """The choices as a plan spells them, less those that a compile makes anyway; None where there are no others."""
    plain = CompileOptions()
    whole = {name: value for (name, part), value in choices.items() if not part and value != getattr(plain, name)}
    rules, kernels = tuple(_parts("without_rules", choices)), _parts("kernels", choices)
    found = TunedChoices(**whole, without_rules=rules, kernels=kernels)
    return found if found.options else None


def _parts(name: str, choices: Mapping[Choice, Any]) -> dict[str, Any]:
    return {part: value for (of, part), value in choices.items() if of == name and value is not None}


def _choices(before: Mapping[Choice, Any], after: Mapping[Choice, Any]) -> Iterator[PlanChange]:
    names = sorted({*before, *after}, key=lambda name: (name[0] == "kernels", name))
    for name in names:
        if before.get(name) != after.get(name):
            yield PlanChange("choice", choice=name, old=before.get(name), new=after.get(name))


def _lets_meet(change: PlanChange) -> bool:
    """Whether more can share a dispatch with it: groups of either plan can be built from then on."""
    if change.choice[0] == "without_rules":
        return change.new is None
    return change.choice[0] == "fusion" and _LEVELS.index(change.new) > _LEVELS.index(change.old)
