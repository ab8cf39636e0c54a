"""Which dispatches of a program run one kernel: those of one form first (`Family.shared`), then those whose own plans
happen to be alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fuseline.analysis.extents_key import extents_key
from fuseline.analysis.structural_key import AttributeNumbers
from fuseline.targets.cpu.code_budget import FULL, general
from fuseline.targets.cpu.families.family import Family, Plan
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import Kernel
from fuseline.targets.cpu.merging.groups import Candidate, grouped, reasons_of


@dataclass(frozen=True)
class Built:
    """One dispatch's kernel before code generation. `merged`: the one that it shares with others, to which it passes
    `numbers`, and does then what `kernel` does, `lost` of its time longer, predicted; `unshared`: why it does not with
    some."""

    family: Family
    plan: Plan
    kernel: Kernel
    refusals: dict[str, str]
    form: str = FULL
    merged: Kernel | None = None
    numbers: tuple[int, ...] = ()
    lost: float = 0.0
    unshared: tuple[str, ...] = ()

    @property
    def code(self) -> Kernel:
        """What is compiled."""
        return self.merged or self.kernel


class _Able(NamedTuple):
    """A dispatch that may share its kernel: its number, what it would be compiled from, and the share of its time that
    it loses by that plan."""

    number: int
    built: Built
    lost: float = 0.0


def merged(
    built: Sequence[Built | None], symbol: str, machine: Machine, numbers: AttributeNumbers
) -> list[Built | None]:
    """The same, those that may be one kernel with that kernel, called `symbol`: first with plans of one form for
    dispatches that are equal up to extents, then, among the others, with the plans that they have."""
    out = list(built)
    for able in _of_one_form(built, machine, numbers):
        _merge(out, able, symbol, machine)
    alone = [_Able(i, one) for i, one in enumerate(out) if one is not None and one.merged is None]
    _merge(out, alone, symbol, machine)
    return out


def _of_one_form(built: Sequence[Built | None], machine: Machine, numbers: AttributeNumbers) -> Iterator[list[_Able]]:
    """Groups of dispatches that are equal up to extents, each with a plan of its group's form."""
    classes: dict[Any, list[tuple[int, Built]]] = {}
    for i, one in enumerate(built):
        if one is not None:
            key = (one.family.name, one.form, extents_key(one.plan.view.entry, numbers))
            classes.setdefault(key, []).append((i, one))
    for members in classes.values():
        plans = [one.plan for _, one in members]
        for shared in members[0][1].family.shared(plans, machine) if len(members) > 1 else ():
            yield [
                _Able(members[number][0], replace(members[number][1], plan=plan), lost)
                for number, plan, lost in zip(shared.members, shared.plans, shared.lost, strict=True)
            ]


def _merge(out: list[Built | None], able: Sequence[_Able], symbol: str, machine: Machine) -> None:
    """Put those of `able` that may be one kernel in their places in `out`."""
    candidates = [_candidate(one, symbol, machine) for one in able]
    groups, unshared = grouped(candidates, symbol, machine)
    reasons = reasons_of(unshared, [one.built.plan.view.entry.sym_name.data for one in able])
    for i, one in enumerate(able):
        now = out[one.number]
        assert now is not None
        out[one.number] = replace(now, unshared=(*now.unshared, *reasons.get(i, ())))
    for group in groups:
        for i, passed, lost in zip(group.members, group.merged.numbers, group.lost, strict=True):
            number, mine, _ = able[i]
            kernel, merged = candidates[i].kernel, group.merged.kernel
            out[number] = replace(mine, kernel=kernel, merged=merged, numbers=passed, lost=lost)


def _candidate(one: _Able, symbol: str, machine: Machine) -> Candidate:
    """A kernel as it may be merged with others of its family and form."""
    mine = one.built
    kernel = general(symbol, machine, mine.family, mine.plan, mine.form)
    return Candidate(f"{mine.family.name} {mine.form}", kernel, one.lost)
