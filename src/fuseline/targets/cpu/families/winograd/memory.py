"""How much larger than the model's own filters transformed ones may be, so that they fit the memory that a program may
take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod

from fuseline.dispatch.view import DispatchView
from fuseline.ir.rounds import rounds
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.family import Policy
from fuseline.targets.cpu.families.winograd.choice import direct_cycles, growth, weighed
from fuseline.targets.cpu.families.winograd.chosen import growth_asked
from fuseline.targets.cpu.families.winograd.loops import WinogradLoops, winograd_loops
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.target import Refusal

EXTRA_BYTES = 64 << 20
"""What transformed filters may take beyond the filters themselves in any program; in a larger one, as much again as its
constants do. Other runtimes keep a second, packed copy of their weights as well."""


@dataclass(frozen=True, slots=True)
class Step:
    """A larger filter for dispatch `number`: bytes and cycles of the whole program that it takes and saves, and how
    large the filter then is."""

    number: int
    extra: float
    saved: float
    growth: float


def filter_growth_limits(
    dispatches: Sequence[tuple[DispatchView, int]], machine: Machine, policy: Policy
) -> list[float]:
    """Per dispatch, how many times as large as the model's filter its transformed one may be; `dispatches` with the
    times that a program launches each, every time with constants of its own.

    What saves the most time per byte is taken first, until the memory is used up; infinity where nothing is to be
    saved.
    """
    left = max(EXTRA_BYTES, sum(_constant_bytes(view) * count for view, count in dispatches))
    asked = {number: _asked(view, count, machine, policy) for number, (view, count) in enumerate(dispatches)}
    chosen = {number: step for number, step in asked.items() if step is not None}
    limits, stopped = [inf] * len(dispatches), set[int]()
    for number, (extra, growth_) in chosen.items():
        limits[number] = growth_ if extra <= left else 1.0
        left -= extra if extra <= left else 0
    steps = [
        step
        for number, (view, count) in enumerate(dispatches)
        if number not in chosen
        for step in _steps(number, view, count, machine, policy)
    ]
    for step in steps:
        limits[step.number] = 1.0
    for step in sorted(steps, key=lambda step: -step.saved / step.extra):
        if step.number in stopped or step.extra > left:
            stopped.add(step.number)
            continue
        left -= step.extra
        limits[step.number] = step.growth
    return limits


def _asked(view: DispatchView, count: int, machine: Machine, policy: Policy) -> tuple[float, float] | None:
    """Bytes that the filter takes which is asked for from outside, beyond the filter itself, and how large it is; None
    where nothing is asked for."""
    choice = policy.choice(view)
    loops = winograd_loops(view) if choice is not None else None
    if choice is None or loops is None or isinstance(loops, Refusal):
        return None
    large = growth_asked(loops, machine, policy, choice) or 1.0
    return (large - 1) * _filter_bytes(loops, count), large


def _filter_bytes(loops: WinogradLoops, count: int) -> int:
    return loops.taps * loops.channels * loops.columns * BYTES["f32"] * max(count, 1)


def _steps(number: int, view: DispatchView, count: int, machine: Machine, policy: Policy) -> list[Step]:
    """From a direct convolution to ever larger filters, each step saving less per byte than the one before."""
    loops = winograd_loops(view)
    if isinstance(loops, Refusal):
        return []
    size = _filter_bytes(loops, count)
    options = {growth(loops, one.blocking): one.cycles for one in weighed(loops, machine, policy)}
    steps: list[Step] = []
    at, cycles = 1.0, direct_cycles(loops, machine, policy.threads)
    for _ in rounds("the steps of filter growth", most=len(options)):  # each is larger than the one before
        further = [
            Step(number, (g - at) * size, (cycles - c) * max(count, 1), g)
            for g, c in options.items()
            if g > at and c < cycles
        ]
        if not further:
            break
        steps.append(max(further, key=lambda step: step.saved / step.extra))
        at = steps[-1].growth
        cycles = options[at]
    return steps


def _constant_bytes(view: DispatchView) -> int:
    shapes = ((value, view.shapes.dims(value)) for value in view.tensors if view.is_constant(value))
    return sum(
        prod(size for size in dims if isinstance(size, int)) * BYTES[dtype_of(value.type)] for value, dims in shapes
    )
