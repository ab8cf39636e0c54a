"""Windows channel by channel: depthwise convolutions, max, min and average pooling, and sums over whole images,
channels innermost."""

from __future__ import annotations

from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.family import Family, Plan, Refusal
from fuseline.targets.cpu.families.window.copied_kernel import CopiedWindowKernel
from fuseline.targets.cpu.families.window.copies import CopiedWindowPlan, uncrowded
from fuseline.targets.cpu.families.window.kernel import WindowKernel
from fuseline.targets.cpu.families.window.plan import WindowPlan, plan_window, window_problem
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder


class WindowFamily(Family):
    """Takes depthwise convolutions and poolings of f32 or f64 whose channels are contiguous in image and result."""

    name = "window"

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan where the root slides a window channel by channel."""
        problem = window_problem(view)
        plan = problem if isinstance(problem, Refusal) else plan_window(problem, machine)
        return plan if isinstance(plan, Refusal) else uncrowded(plan, machine)

    def emit(self, plan: Plan, kernel: KernelBuilder) -> None:
        """Build the kernel."""
        assert isinstance(plan, WindowPlan)
        (CopiedWindowKernel(plan, kernel) if isinstance(plan, CopiedWindowPlan) else WindowKernel(plan, kernel)).emit()


EXPORT = WindowFamily
