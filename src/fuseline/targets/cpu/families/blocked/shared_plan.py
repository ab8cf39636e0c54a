"""One form for blocked dispatches that are equal up to extents: one for each of their sub-kernels.

squeeze and expand, 55x55 pixels        both products in 14x16 tiles
squeeze and expand, 27x27 pixels        the same; each keeps its blocks
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fuseline.ir.costs import assumed_size
from fuseline.ir.rounds import rounds
from fuseline.targets.cpu.families.blocked.plan import BlockedPlan
from fuseline.targets.cpu.families.blocked.planned_sub_kernels import asked_layouts
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.estimates import flops
from fuseline.targets.cpu.families.family import Plan, Shared
from fuseline.targets.cpu.isa.description import Machine

OTHER_WORK = 4
"""Operations of products that take as long as one of a window, which is bound by loads."""


@dataclass
class _Group:
    """Dispatches, by number, that have a form so far: for each the plans of its sub-kernels, their shares of its work,
    and what it loses."""

    plans: dict[int, list[Plan]]
    shares: Mapping[int, Sequence[float]]
    lost: dict[int, float] = field(default_factory=dict[int, float])

    def agree(self, number: int, shared: Shared) -> None:
        """Keep those that have a form for sub-kernel `number`, too."""
        members = [list(self.plans)[i] for i in shared.members]
        for member, plan, lost in zip(members, shared.plans, shared.lost, strict=True):
            self.plans[member][number] = plan
            self.lost[member] = self.lost.get(member, 0.0) + lost * self.shares[member][number]
        self.plans = {member: self.plans[member] for member in members}


def shared_blocked_plans(plans: Sequence[BlockedPlan], machine: Machine) -> list[Shared]:
    """Groups of two or more of the plans with a form for each sub-kernel that can have one."""
    found: list[Shared] = []
    left = {number: plan for number, plan in enumerate(plans) if plan.streamed is None and not plan.keeps_rows}
    for _ in rounds("forms of blocked dispatches", most=len(plans)):
        group = _group(left, machine)
        if len(group.lost) < 2:
            break
        members = tuple(group.plans)
        found.append(Shared(
            members,
            tuple(_with_plans(plans[member], group.plans[member]) for member in members),
            tuple(group.lost[member] for member in members),
        ))  # fmt: skip
        left = {number: plan for number, plan in left.items() if number not in members}
    return found


def _group(plans: Mapping[int, BlockedPlan], machine: Machine) -> _Group:
    """The largest group for the first sub-kernel, of which those stay that have a form for the next ones."""
    group = _Group(
        {number: [sub_kernel.plan for sub_kernel in plan.sub_kernels] for number, plan in plans.items()},
        {number: _shares(plan) for number, plan in plans.items()},
    )
    sub_kernels = [[one.family for one in plan.sub_kernels] for plan in plans.values()]
    if len({tuple(family.name for family in families) for families in sub_kernels}) != 1:
        return group
    for number, family in enumerate(sub_kernels[0]):
        forms = family.shared([mine[number] for mine in group.plans.values()], machine)
        if forms:
            group.agree(number, forms[0])
    group.lost = {member: group.lost[member] for member in group.plans if member in group.lost}
    return group


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
