"""Which dispatches of a program run one kernel: those of one form first (`Family.shared`), then those whose own plans
happen to be alike, then those that would be but for the edges of their images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fuseline.analysis.structural_key import AttributeNumbers
from fuseline.targets.cpu.code_budget import FULL, general
from fuseline.targets.cpu.families.family import Family, Plan
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import Kernel
from fuseline.targets.cpu.merging.edges import decides_rows, edges_price
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
    dispatches that are equal up to extents, then, among the others, with the plans that they have, at last with the
    checks of rows at edges that none of them has alone."""
    out = list(built)
    for able in _of_one_form(built, machine, numbers):
        _merge(out, able, symbol, machine)
    _merge(out, _alone(out), symbol, machine)
    _merge(out, _alone(out), symbol, machine, edges=True)
    return out


def _alone(built: Sequence[Built | None]) -> list[_Able]:
    """Those that have a kernel of their own still."""
    return [_Able(i, one) for i, one in enumerate(built) if one is not None and one.merged is None]


def _of_one_form(built: Sequence[Built | None], machine: Machine, numbers: AttributeNumbers) -> Iterator[list[_Able]]:
    """Groups of dispatches that are equal up to extents, each with a plan of its group's form."""
    classes: dict[Any, list[tuple[int, Built]]] = {}
    for i, one in enumerate(built):
        if one is not None and not any(
            kernel_plan.choice for kernel_plan in one.plan.kernel_plans
        ):  # a form would overrule what was asked
            key = (one.family.kernels, one.form, one.family.likeness(one.plan, numbers))
            classes.setdefault(key, []).append((i, one))
    for members in classes.values():
        plans = [one.plan for _, one in members]
        for shared in members[0][1].family.shared(plans, machine) if len(members) > 1 else ():
            yield [
                _Able(members[number][0], replace(members[number][1], plan=plan), lost)
                for number, plan, lost in zip(shared.members, shared.plans, shared.lost, strict=True)
            ]


def _merge(
    out: list[Built | None], able: Sequence[_Able], symbol: str, machine: Machine, *, edges: bool = False
) -> None:
    """Put those of `able` that may be one kernel in their places in `out`. `edges`: those that meet padding, with their
    edges kept."""
    candidates = [_candidate(one, symbol, machine) for one in able]
    if edges:
        kept = [_with_edges(one, own, symbol, machine) for one, own in zip(able, candidates, strict=True)]
        able = [one for one, other in zip(able, kept, strict=True) if other is not None]
        candidates = [one for one in kept if one is not None]
    groups, unshared = grouped(candidates, symbol, machine)
    reasons = reasons_of(unshared, [one.built.plan.view.entry.sym_name.data for one in able])
    for i, one in enumerate(able):
        now = out[one.number]
        assert now is not None
        out[one.number] = replace(now, unshared=tuple(dict.fromkeys((*now.unshared, *reasons.get(i, ())))))
    for group in groups:
        for i, passed, lost in zip(group.members, group.merged.numbers, group.lost, strict=True):
            number, mine, _ = able[i]
            kernel, merged = candidates[i].kernel, group.merged.kernel
            out[number] = replace(mine, kernel=kernel, merged=merged, numbers=passed, lost=lost, unshared=())


def _candidate(one: _Able, symbol: str, machine: Machine) -> Candidate:
    """A kernel as it may be merged with others of its family and form."""
    mine = one.built
    kernel = general(symbol, machine, mine.family, mine.plan, mine.form)
    return Candidate(f"{mine.family.kernels} {mine.form}", kernel, one.lost)


def _with_edges(one: _Able, own: Candidate, symbol: str, machine: Machine) -> Candidate | None:
    """The same with its edges kept (`Emitter.keeps_edges`), and priced for it; None where it has none."""
    mine = one.built
    kernel = general(symbol, machine, mine.family, mine.plan, mine.form, edges=True)
    if not decides_rows(kernel):
        return None
    return replace(own, kernel=kernel, own=own.kernel, lost=own.lost + edges_price(kernel, own.kernel))
