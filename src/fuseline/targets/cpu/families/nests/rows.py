"""Row reductions and what surrounds them: softmax, layer and RMS norms, log-sum-exp. A workgroup holds its rows in
scratch and registers."""

from __future__ import annotations

from fuseline.analysis.structured import Kind, is_reduction, kind
from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.combining import combiners
from fuseline.targets.cpu.families.family import Plan, Refusal
from fuseline.targets.cpu.families.nests.loop_nest import LoopNest, nest_plan
from fuseline.targets.cpu.isa.description import Machine


class Rows(LoopNest):
    """Dispatches whose reductions are plain (no windows, no contractions), associative and contiguous."""

    name = "rows"

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan if all reductions run across the lanes."""
        reductions = [op for op in view.members if is_reduction(op)]
        if not reductions:
            return Refusal("no-reduction", "nothing is reduced")
        for op in reductions:
            if kind(op) is not Kind.REDUCTION or combiners(op) is None:  # pyright: ignore[reportArgumentType]
                return Refusal("not-a-row-reduction", f"{op.name} is a {kind(op).value} or depends on order")
        plan = nest_plan(view, machine, self.policy.threads)
        grouped = [group for group in plan.schedule.groups if any(stage.op is not None for stage in group.stages)]
        if any(group.lane_reduction is None and not group.together for group in grouped):
            return Refusal("not-contiguous", "a reduction does not run along memory")
        return plan


EXPORT = Rows
