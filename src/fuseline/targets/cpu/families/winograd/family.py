"""Convolutions by minimal filtering (Winograd): fewer multiplications than taps, for small windows with unit steps.

A tile of m outputs along an axis with r taps costs m + r - 1 products per pair of channels instead of m * r; with F(4,
3) along both axes 36 instead of 144. What that saves is spent in part on transforming tiles and results, and the
transformed filter is larger, so a model of both decides against a direct convolution. The rounding error is larger as
well: see `matrices.error_ratio` and `numerics`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.family import Alternative, Family, Plan, Refusal, Shared
from fuseline.targets.cpu.families.winograd.choice import choose
from fuseline.targets.cpu.families.winograd.chosen import plan_chosen, winograd_alternatives
from fuseline.targets.cpu.families.winograd.kernel import WinogradKernel
from fuseline.targets.cpu.families.winograd.loops import winograd_loops
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan
from fuseline.targets.cpu.families.winograd.shared_plan import shared_plans
from fuseline.targets.cpu.isa.description import Machine


class WinogradFamily(Family):
    """Takes f32 convolutions with unit steps, windows of 3 or 5 along one or two axes and a constant filter, where that
    is faster."""

    name = "winograd"
    kernel_type = WinogradKernel
    computes_rows_alike = False

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan where minimal filtering applies, errs little enough and pays."""
        loops = winograd_loops(view)
        if isinstance(loops, Refusal):
            return loops
        choice = self.policy.choice(view)
        if choice is None:
            return choose(loops, machine, self.policy)
        return plan_chosen(loops, machine, self.policy, choice)

    def alternatives(self, plan: Plan, machine: Machine) -> Iterator[Alternative]:
        """Other tile sizes, or any where a convolution is direct, and that it is where it is not."""
        loops = winograd_loops(plan.view)
        if not isinstance(loops, Refusal):
            yield from winograd_alternatives(loops, plan, machine, self.policy)

    def shared(self, plans: Sequence[Plan], machine: Machine) -> Sequence[Shared]:
        """Plans with blocks in tiles of one height, of the same filtering."""
        return shared_plans([plan for plan in plans if isinstance(plan, WinogradPlan)], machine)


EXPORT = WinogradFamily
