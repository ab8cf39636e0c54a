"""The sub-kernels of a blocked dispatch with the family and the plan of each, and what they ask of its constants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.blocked.entry import ResultTarget, SubKernelEntry
from fuseline.targets.cpu.families.family import Family, Plan
from fuseline.weight_layouts import PackedLayout

Choose = Callable[[DispatchView], "tuple[Family, Plan]"]


@dataclass(frozen=True)
class PlannedSubKernel:
    """A sub-kernel with the family that lowers it. `arguments` and `targets` are what its bindings are in the dispatch,
    `extra` the first of its own."""

    family: Family
    plan: Plan
    arguments: tuple[SSAValue, ...]
    targets: tuple[ResultTarget, ...]
    extra: int

    @property
    def layouts(self) -> dict[SSAValue, PackedLayout]:
        """How constants must lie."""
        return {self.arguments[position]: layout for position, layout in self.plan.constant_layouts.items()}


def planned_sub_kernels(
    view: DispatchView, entries: Sequence[SubKernelEntry], choose: Choose
) -> Iterator[PlannedSubKernel]:
    """A family and a plan for each sub-kernel."""
    extra = len(view.tensors) + len(view.results)
    for entry in entries:
        family, plan = choose(DispatchView(entry.entry, serial=True))
        yield PlannedSubKernel(family, plan, entry.arguments, entry.targets, extra)
        extra += len(plan.extra_constants)


def asked_layouts(view: DispatchView, planned: Sequence[PlannedSubKernel]) -> dict[int, PackedLayout]:
    """What sub-kernels ask of the dispatch's constants, by position."""
    asked = {argument: layout for one in planned for argument, layout in one.layouts.items()}
    return {position: asked[argument] for position, argument in enumerate(view.tensors) if argument in asked}
