"""How much larger than the model's own filters transformed ones may be, so that they fit the memory that a program may take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from fuseline.analysis.dispatch_view import DispatchView
from fuseline.targets.cpu.access import dtype_of
from fuseline.targets.cpu.families.family import Policy
from fuseline.targets.cpu.families.winograd_choice import Weighed, growth, picked, weighed
from fuseline.targets.cpu.families.winograd_problem import FilteringProblem, filtering_problem
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.target import Refusal

EXTRA_BYTES = 64 << 20
"""What transformed filters may take beyond the filters themselves in any program; in a larger one, as much again as its constants do. Other
runtimes keep a second, packed copy of their weights as well."""


def filter_growth_limit(dispatches: Sequence[tuple[DispatchView, int]], machine: Machine, policy: Policy) -> float:
    """The largest growth of a filter at which all that are transformed fit; `dispatches` with the times that a program launches each, every
    time with constants of its own."""
    budget = max(EXTRA_BYTES, sum(_constant_bytes(view) * count for view, count in dispatches))
    found: list[tuple[FilteringProblem, int, list[Weighed]]] = []
    for view, count in dispatches:
        problem = filtering_problem(view)
        if not isinstance(problem, Refusal):
            found.append((problem, count, weighed(problem, machine, policy)))
    growths = sorted({growth(problem, one.blocking) for problem, _, options in found for one in options}, reverse=True)
    for limit in growths:
        allowed = replace(policy, filter_growth=limit)
        if sum(count * _extra_bytes(problem, options, machine, allowed) for problem, count, options in found) <= budget:
            return limit
    return 1.0


def _extra_bytes(problem: FilteringProblem, options: list[Weighed], machine: Machine, policy: Policy) -> float:
    best = picked(problem, options, machine, policy)
    if isinstance(best, Refusal):
        return 0
    return (growth(problem, best.blocking) - 1) * problem.taps * problem.channels * problem.columns * BYTES["f32"]


def _constant_bytes(view: DispatchView) -> int:
    shapes = ((value, view.shapes.dims(value)) for value in view.tensors if view.is_constant(value))
    return sum(prod(size for size in dims if isinstance(size, int)) * BYTES[dtype_of(value.type)] for value, dims in shapes)
