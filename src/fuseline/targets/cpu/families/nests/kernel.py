"""Emission of a schedule: the grid's loop, the groups' loops inside, the stages at each point.

The families loop_nest, elementwise and rows build the same kind of kernel and differ in what they accept.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from fuseline.targets.cpu.emit.body_emitter import ValueSource
from fuseline.targets.cpu.families.nests.group_emitter import GroupEmitter
from fuseline.targets.cpu.families.nests.schedule import Schedule
from fuseline.targets.cpu.families.nests.workgroup import Workgroup
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand


def emit_nests(schedule: Schedule, kernel: KernelBuilder) -> None:
    """The loop over this thread's workgroups, each with all groups of the schedule."""
    workgroup = Workgroup(schedule, kernel, _made_ahead(schedule, kernel))

    def one(number: Operand) -> None:
        workgroup.enter(number)
        for group in schedule.groups:
            GroupEmitter(workgroup, group).emit()

    kernel.loop(kernel.begin, kernel.end, 1, one)


def _made_ahead(schedule: Schedule, kernel: KernelBuilder) -> Mapping[SSAValue, ValueSource]:
    """What is made before the loop over workgroups, as later reads of it."""
    whole = Workgroup(Schedule(schedule.staging, [], None, 1, [], schedule.ahead), kernel)
    whole.read_later = {value for group in schedule.ahead for stage in group.stages for value in stage.values}
    for group in schedule.ahead:
        GroupEmitter(whole, group).emit()
    return whole.e.known
