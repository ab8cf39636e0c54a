"""One form for blocked dispatches that are equal up to extents: one for each of their sub-kernels.

squeeze and expand, 55x55 pixels        both products in 14x16 tiles
squeeze and expand, 27x27 pixels        the same; each keeps its blocks
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from fuseline.ir.costs import assumed_size
from fuseline.ir.rounds import rounds
from fuseline.targets.cpu.families.blocked.kept_rows import apart
from fuseline.targets.cpu.families.blocked.plan import BlockedPlan
from fuseline.targets.cpu.families.blocked.planned_sub_kernels import asked_layouts
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.estimates import flops
from fuseline.targets.cpu.families.family import Plan, Shared
from fuseline.targets.cpu.isa.description import Machine

OTHER_WORK = 4
"""Operations of products that take as long as one of a window, which is bound by loads."""

_Form: TypeAlias = "tuple[Plan, float]"
"""A plan in a form for several, and the share of its time that it loses by that."""


@dataclass
class _Group:
    """Dispatches, by number, that have a form so far: for each the plans of its sub-kernels, their shares of its work,
    and what it loses."""

    plans: dict[int, list[Plan]]
    shares: Mapping[int, Sequence[float]]
    lost: dict[int, float] = field(default_factory=dict[int, float])

    def agree(self, forms: Mapping[int, Sequence[_Form | None]]) -> None:
        """Keep those that have a form for all of these sub-kernels, too: `forms` has by sub-kernel those of all
        members."""
        for member, own in zip(list(self.plans), zip(*forms.values(), strict=True), strict=True):
            found = {number: form for number, form in zip(forms, own, strict=True) if form is not None}
            if len(found) < len(forms):
                del self.plans[member]
                continue
            for number, (plan, lost) in found.items():
                self.plans[member][number] = plan
                self.lost[member] = self.lost.get(member, 0.0) + lost * self.shares[member][number]


def shared_blocked_plans(plans: Sequence[BlockedPlan], machine: Machine) -> list[Shared]:
    """Groups of two or more of the plans with a form for each sub-kernel that can have one."""
    classes = dict[Hashable, dict[int, BlockedPlan]]()
    for number, plan in enumerate(plans):
        if plan.streamed is None:
            families = tuple(one.family.name for one in plan.sub_kernels)
            classes.setdefault((families, plan.kept_image is not None), {})[number] = plan
    return [one for alike in classes.values() for one in _forms(alike, machine)]


def _forms(plans: Mapping[int, BlockedPlan], machine: Machine) -> Iterator[Shared]:
    """Groups of plans whose sub-kernels are of the same families."""
    left = dict(plans)
    for _ in rounds("forms of blocked dispatches", most=len(plans)):
        group = _group(left, machine)
        made = {member: _with_plans(left[member], group.plans[member]) for member in group.lost}
        able = [member for member, plan in made.items() if apart(plan.makers_of_rows) is None]
        if len(able) < 2:
            break
        yield Shared(tuple(able), tuple(made[member] for member in able), tuple(group.lost[member] for member in able))
        left = {number: plan for number, plan in left.items() if number not in able}


def _group(plans: Mapping[int, BlockedPlan], machine: Machine) -> _Group:
    """The largest group for the first sub-kernel, of which those stay that have a form for the next ones."""
    group = _Group(
        {number: [sub_kernel.plan for sub_kernel in plan.sub_kernels] for number, plan in plans.items()},
        {number: _shares(plan) for number, plan in plans.items()},
    )
    if len(plans) < 2:
        return group
    first = next(iter(plans.values()))
    for numbers in _together(first):
        mine = [plans[number] for number in numbers for plans in group.plans.values()]
        forms = first.sub_kernels[numbers[0]].family.shared(mine, machine)
        if forms:
            group.agree(_by_number(numbers, forms[0], len(group.plans)))
    group.lost = {member: group.lost[member] for member in group.plans if member in group.lost}
    return group


def _by_number(numbers: Sequence[int], shared: Shared, count: int) -> dict[int, list[_Form | None]]:
    """The forms by sub-kernel, where `shared` has those of the first one of `count` members, then those of the next."""
    forms = dict(zip(shared.members, zip(shared.plans, shared.lost, strict=True), strict=True))
    return {
        number: [forms.get(place) for place in range(turn * count, (turn + 1) * count)]
        for turn, number in enumerate(numbers)
    }


def _together(plan: BlockedPlan) -> list[tuple[int, ...]]:
    """The sub-kernels, those together that are to have one form: what makes the rows of an image, where some are kept,
    reads the same constants."""
    numbers, makers = range(len(plan.sub_kernels)), plan.makers_of_rows
    if len({one.family.name for one in makers}) != 1:
        return [(number,) for number in numbers]
    return [tuple(numbers[: len(makers)]), *((number,) for number in numbers[len(makers) :])]


def _shares(plan: BlockedPlan) -> list[float]:
    """The share of a dispatch's time that each of its sub-kernels is expected to take."""
    work = [
        assumed_size(flops(one.plan.view)) * (1 if isinstance(one.plan, ContractionPlan) else OTHER_WORK)
        for one in plan.sub_kernels
    ]
    return [one / sum(work) for one in work]


def _with_plans(plan: BlockedPlan, plans: Sequence[Plan]) -> BlockedPlan:
    """The plan with others for its sub-kernels."""
    sub_kernels = tuple(replace(one, plan=other) for one, other in zip(plan.sub_kernels, plans, strict=True))
    return replace(plan, sub_kernels=sub_kernels, constant_layouts=asked_layouts(plan.view, sub_kernels))
