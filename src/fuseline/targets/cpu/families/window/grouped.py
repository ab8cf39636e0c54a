"""Convolutions of few channels per group: several groups side by side in one vector, and image columns shared by the
pixels that see them."""

from __future__ import annotations

from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.family import Family, Plan, Refusal
from fuseline.targets.cpu.families.window.grouped_kernel import GroupedKernel
from fuseline.targets.cpu.families.window.grouped_plan import GroupedPlan, grouped_problem, plan_grouped
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder


class GroupedFamily(Family):
    """Takes grouped convolutions of f32 or f64, channels innermost, whose groups are too narrow for register tiles of
    their own."""

    name = "grouped"

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan where the root convolves in narrow groups."""
        problem = grouped_problem(view)
        return problem if isinstance(problem, Refusal) else plan_grouped(problem, machine)

    def emit(self, plan: Plan, kernel: KernelBuilder) -> None:
        """Build the kernel."""
        assert isinstance(plan, GroupedPlan)
        GroupedKernel(plan, kernel).emit()


EXPORT = GroupedFamily
