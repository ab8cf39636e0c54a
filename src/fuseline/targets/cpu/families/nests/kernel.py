"""Emission of a schedule: the grid's loop, the groups' loops inside, the stages at each point.

The families loop_nest, elementwise and rows build the same kind of kernel and differ in what they accept.
"""

from __future__ import annotations

from fuseline.targets.cpu.families.nests.group_emitter import GroupEmitter
from fuseline.targets.cpu.families.nests.schedule import Schedule
from fuseline.targets.cpu.families.nests.workgroup import Workgroup
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand


def emit_nests(schedule: Schedule, kernel: KernelBuilder) -> None:
    """The loop over this thread's workgroups, each with all groups of the schedule."""
    workgroup = Workgroup(schedule, kernel)

    def one(number: Operand) -> None:
        workgroup.enter(number)
        for group in schedule.groups:
            GroupEmitter(workgroup, group).emit()

    kernel.loop(kernel.begin, kernel.end, 1, one)
