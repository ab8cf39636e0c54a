"""Windows over images, channels innermost: depthwise convolutions, max, min and average pooling, sums over whole
images, channel by channel; and convolutions in groups too narrow for register tiles of their own, several groups side
by side in one vector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fuseline.analysis.structured import Kind, kind
from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.family import Alternative, Family, Plan, Refusal, Shared
from fuseline.targets.cpu.families.window.chosen import (
    groups_chosen,
    plan_chosen,
    strips_chosen,
    window_alternatives,
)
from fuseline.targets.cpu.families.window.copied_kernel import CopiedWindowKernel
from fuseline.targets.cpu.families.window.copies import CopiedWindowPlan
from fuseline.targets.cpu.families.window.groups import grouped_window_loops
from fuseline.targets.cpu.families.window.kernel import WindowKernel
from fuseline.targets.cpu.families.window.loops import window_loops
from fuseline.targets.cpu.families.window.plan import WindowPlan
from fuseline.targets.cpu.families.window.planes import PlanesKernel, PlanesPlan, plan_planes
from fuseline.targets.cpu.families.window.shared_plan import shared_plans
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder


class WindowFamily(Family):
    """Takes depthwise convolutions, poolings and convolutions in narrow groups, of f32 or f64, whose channels are
    contiguous in image and result; and the first two where the pixels of a line are (`planes.py`)."""

    name = "window"

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan where the root slides a window channel by channel, or over narrow groups of them."""
        choice = self.policy.choice(view)
        if view.root_view is not None and kind(view.root_view.op) is Kind.CONVOLUTION:
            grouped = grouped_window_loops(view)
            return grouped if isinstance(grouped, Refusal) else groups_chosen(grouped, machine, choice)
        loops = window_loops(view)
        plan = loops if isinstance(loops, Refusal) else plan_chosen(loops, machine, choice)
        if not isinstance(plan, Refusal) or plan.code.startswith("choice-"):
            return plan
        planes = plan_planes(view, machine)
        other = strips_chosen(view, machine, choice) if isinstance(planes, Refusal) else planes
        return plan if isinstance(other, Refusal) and not other.code.startswith("choice-") else other

    def alternatives(self, plan: Plan, machine: Machine) -> Iterator[Alternative]:
        """Other tiles and blocks, and whether the image is copied; none for planes."""
        if isinstance(plan, WindowPlan) and not isinstance(plan, PlanesPlan):
            yield from window_alternatives(plan, machine)

    def emit(self, plan: Plan, kernel: KernelBuilder) -> None:
        """Build the kernel."""
        assert isinstance(plan, WindowPlan)
        if isinstance(plan, CopiedWindowPlan):
            CopiedWindowKernel(plan, kernel).emit()
        elif isinstance(plan, PlanesPlan):
            PlanesKernel(plan, kernel).emit()
        else:
            WindowKernel(plan, kernel).emit()

    def shared(self, plans: Sequence[Plan], machine: Machine) -> Sequence[Shared]:
        """Plans with tiles of common numbers of pixels, of images that are read where they are."""
        found = [plan for plan in plans if type(plan) is WindowPlan]
        return shared_plans(found, machine) if len(found) == len(plans) else ()


EXPORT = WindowFamily
