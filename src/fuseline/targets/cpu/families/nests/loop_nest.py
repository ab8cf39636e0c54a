"""The general family: any dispatch, as a grid of points with loops inside. Tried last, it accepts everything."""

from __future__ import annotations

from dataclasses import dataclass

from fuseline.dispatch.view import DispatchView
from fuseline.ir.dim import upper_bound
from fuseline.targets.cpu.families.family import Family, Plan, Refusal
from fuseline.targets.cpu.families.nests.grouped_columns import grouped_columns
from fuseline.targets.cpu.families.nests.kernel import emit_nests
from fuseline.targets.cpu.families.nests.schedule import Schedule, build_schedule
from fuseline.targets.cpu.families.nests.stages import Staging
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder


@dataclass(frozen=True, kw_only=True)
class NestPlan(Plan):
    """A schedule as a plan; the families elementwise and rows use it too."""

    schedule: Schedule


def nest_plan(view: DispatchView, machine: Machine, threads: int = 1) -> NestPlan:
    """The plan for any dispatch that so many threads share; one that has nothing to write has no workgroups."""
    if all(any(upper_bound(size) == 0 for size in view.shapes.dims(result)) for result in view.results):
        return NestPlan(view=view, workgroups=0, schedule=Schedule(Staging(view), [], None, 1, [], []))
    grouped = grouped_columns(view, machine)
    schedule = build_schedule(
        Staging(view if grouped is None else grouped.view, grouped), machine, 1 if view.serial else threads
    )
    notes = {"stages": len(schedule.staging.stages), "groups": len(schedule.groups), "chunk": schedule.chunk}
    return NestPlan(view=view, workgroups=schedule.workgroups, schedule=schedule, notes=notes)


class LoopNest(Family):
    """Accepts every dispatch."""

    name = "loop-nest"
    reads_shared_layouts = True

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan, always."""
        return nest_plan(view, machine, self.policy.threads)

    def emit(self, plan: Plan, kernel: KernelBuilder) -> None:
        """The nest of the plan's schedule."""
        assert isinstance(plan, NestPlan)
        emit_nests(plan.schedule, kernel)


EXPORT = LoopNest
