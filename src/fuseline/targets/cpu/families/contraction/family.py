"""Contractions: matrix products of any orientation, batched, with prologues and epilogues, in register tiles.

out[batch, m, n] += lhs[batch, m, k] * rhs[batch, n, k]      each of batch, m, n, k may be several loops, in any order
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from fuseline.analysis.structural_key import AttributeNumbers
from fuseline.analysis.structured import Kind, kind
from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.contraction.chosen import contraction_alternatives, plan_chosen
from fuseline.targets.cpu.families.contraction.kernel import ContractionKernel
from fuseline.targets.cpu.families.contraction.loops import contraction_loops
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.contraction.shared_plan import likeness, shared_plans
from fuseline.targets.cpu.families.family import Alternative, Family, Plan, Refusal, Shared
from fuseline.targets.cpu.isa.description import Machine


class ContractionFamily(Family):
    """Takes every f32 or f64 contraction with a row or column loop; epilogues follow the result point by point."""

    name = "contraction"
    kernel_type = ContractionKernel

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan where the root contracts."""
        if view.root is None or kind(view.root) is not Kind.CONTRACTION:
            return Refusal("not-a-contraction", "the root is no contraction")
        loops = contraction_loops(view, threads=self.policy.threads)
        return loops if isinstance(loops, Refusal) else plan_chosen(loops, machine, self.policy.choice(view))

    def alternatives(self, plan: Plan, machine: Machine) -> Iterator[Alternative]:
        """Other tiles and blocks."""
        if isinstance(plan, ContractionPlan) and kind(plan.loops.root.op) is Kind.CONTRACTION:
            yield from contraction_alternatives(plan, machine)

    def likeness(self, plan: Plan, numbers: AttributeNumbers) -> Hashable:
        """Equal up to extents, and to how far apart rows are."""
        assert isinstance(plan, ContractionPlan)
        return likeness(plan, numbers)

    def shared(self, plans: Sequence[Plan], machine: Machine) -> Sequence[Shared]:
        """Plans with tiles and partial sums in common."""
        return shared_plans([plan for plan in plans if isinstance(plan, ContractionPlan)], machine)


EXPORT = ContractionFamily
