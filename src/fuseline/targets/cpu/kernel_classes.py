"""The kernels of a program by class, and what may be asked of each in place of what its family chooses.

arm or sub-kernel  --families-->  plan  --every family's `alternatives`-->  tile=6x32, winograd=4, ..
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.func import FuncOp

from fuseline.analysis.structural_key import AttributeNumbers, structural_key
from fuseline.dispatch.arm_entries import split_arms
from fuseline.dispatch.calls import call_counts
from fuseline.dispatch.naming import shape_label
from fuseline.dispatch.view import DispatchView
from fuseline.ir.costs import assumed_size
from fuseline.targets.cpu.families import families
from fuseline.targets.cpu.families.estimates import flops
from fuseline.targets.cpu.families.family import Alternative, Plan, Policy, Refusal
from fuseline.targets.cpu.families.winograd.memory import filter_growth_limits
from fuseline.targets.cpu.isa.description import Machine


@dataclass(frozen=True, slots=True)
class KernelClass:
    """Kernels of one structure.

    Attributes:
        name: `kind.id`. family: that takes it. shape: of its first result. notes: what the family chose. launches: of a
        run. ns: nanoseconds that they take, predicted. executables: whose kernels they are, or parts of. alternatives:
        the best by the model first.
    """

    name: str
    family: str
    shape: str
    notes: tuple[tuple[str, str], ...]
    launches: int
    ns: float
    executables: tuple[str, ...]
    alternatives: tuple[Alternative, ...]


def kernel_classes(
    entries: Sequence[FuncOp], machine: Machine, policy: Policy, progress: Callable[[int, int], None] | None = None
) -> list[KernelClass]:
    """The classes behind entry functions of executables, in order. `progress(done, total)` is told after each."""
    split = [(entry, arm.entry, count) for entry, count in _counted(entries) for arm in split_arms(entry)]
    views = [DispatchView(arm) for _, arm, _ in split]
    limits = filter_growth_limits([(view, one[2]) for view, one in zip(views, split, strict=True)], machine, policy)
    found: dict[str, KernelClass] = {}
    numbers, planned = AttributeNumbers(), dict[object, tuple[str, Plan, Policy]]()
    for done, ((entry, arm, count), view, limit) in enumerate(zip(split, views, limits, strict=True), 1):
        key = structural_key(arm, numbers), limit
        if key not in planned:
            own = replace(policy, filter_growth=limit)
            planned[key] = (*_planned(view, machine, own), own)
        family, plan, own = planned[key]
        blocks = assumed_size(plan.workgroups) if plan.kernel_plans[1:] else 1
        for kernel_plan in _kernels(plan):
            one = _class_of(kernel_plan, family, machine, own)
            _add(found, replace(one, ns=one.ns * blocks), entry.sym_name.data, count)
        if progress is not None:
            progress(done, len(split))
    return list(found.values())


def _counted(entries: Sequence[FuncOp]) -> Iterator[tuple[FuncOp, int]]:
    return zip(entries, call_counts(entries), strict=True)


def _planned(view: DispatchView, machine: Machine, policy: Policy) -> tuple[str, Plan]:
    """The first family that takes a dispatch, and its plan."""
    for family in families(policy):
        plan = family.accepts(view, machine)
        if not isinstance(plan, Refusal):
            return family.name, plan
    raise AssertionError("the loop nest accepts everything")


def _kernels(plan: Plan) -> Sequence[Plan]:
    """The plan, or those of the sub-kernels that it puts together."""
    return plan.kernel_plans[1:] or plan.kernel_plans


def _class_of(plan: Plan, family: str, machine: Machine, policy: Policy) -> KernelClass:
    view = plan.view
    offered = [one for family_ in families(policy) for one in family_.alternatives(plan, machine)]
    return KernelClass(
        name=view.kernel_class,
        family=family,
        shape=shape_label(view.results[0], view.shapes) if view.results else "",
        notes=tuple((name, str(value)) for name, value in plan.notes.items() if isinstance(value, str | int)),
        launches=0,
        ns=assumed_size(flops(view)) / machine.costs.flops_per_ns,
        executables=(),
        alternatives=tuple(sorted(offered, key=lambda one: one.time)),
    )


def _add(found: dict[str, KernelClass], one: KernelClass, executable: str, count: int) -> None:
    """Count launches of a class."""
    known = found.setdefault(one.name, replace(one, ns=0.0))
    executables = dict.fromkeys((*known.executables, executable))
    found[one.name] = replace(
        known, launches=known.launches + count, ns=known.ns + count * one.ns, executables=tuple(executables)
    )
