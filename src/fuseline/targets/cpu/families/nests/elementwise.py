"""Dispatches that only move and transform elements: no reduction is made, so every result is one traversal over
memory."""

from __future__ import annotations

from fuseline.analysis.structured import is_reduction
from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.family import Plan, Refusal
from fuseline.targets.cpu.families.nests.loop_nest import LoopNest, nest_plan
from fuseline.targets.cpu.isa.description import Machine


class Elementwise(LoopNest):
    """Elementwise chains, broadcasts, transposes, gathers, pads, slices, concats."""

    name = "elementwise"

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan unless some member reduces."""
        reducing = next((op for op in view.members if is_reduction(op)), None)
        if reducing is not None:
            return Refusal("reduces", f"{reducing.name} has reduction loops")
        return nest_plan(view, machine, self.policy.threads)


EXPORT = Elementwise
