"""order-dispatches: which steps run together and in which order: waves, with a barrier between them.

A wave holds steps that do not depend on each other. Both orders below need as many waves as the longest chain of
dependencies, the least possible; they differ in how long tensors live:

    earliest: each step as soon as its operands are there     (frees inputs early)
    latest:   each step just before its first consumer        (does not hold results early)

The one whose live bytes peak lower is taken; of equal peaks, the one that holds less on the whole. The pass puts the
ops of `@main` in that order; the schedule is computed from any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from fuseline.ir.context import CompilerContext
from fuseline.ir.costs import assumed_size
from fuseline.passes.schedule.dependencies import StepNeeds, earliest_waves, live_waves, needs_of, size_makers
from fuseline.passes.schedule.main_calls import main_function
from fuseline.passes.schedule.read_main import read_main
from fuseline.program.schedule import Schedule


def order_dispatches(steps: Sequence[StepNeeds], buffer_bytes: Sequence[int]) -> list[int]:
    """The wave of each step; `buffer_bytes` is 0 for what takes no transient memory. `steps` must be in a topological
    order.

    >>> a, b = StepNeeds((), (), (0,)), StepNeeds((), (), (1,))
    >>> order_dispatches([a, b, StepNeeds((0, 1), (0, 1), ())], [4, 4])
    [0, 0, 1]
    """
    orders = [_separated(steps, waves) for waves in (earliest_waves(steps), latest_waves(steps))]
    return min(orders, key=lambda waves: _burden(live_bytes(steps, waves, buffer_bytes)))


def latest_waves(steps: Sequence[StepNeeds]) -> list[int]:
    """Each step in the last wave before those of the steps that depend on it."""
    last = max(earliest_waves(steps), default=0)
    waves = [last] * len(steps)
    for number in range(len(steps) - 1, -1, -1):
        for before in steps[number].after:
            waves[before] = min(waves[before], waves[number] - 1)
    return waves


def _separated(steps: Sequence[StepNeeds], waves: Sequence[int]) -> list[int]:
    """The same order with every step that must be alone in a wave of its own, before the others of its wave."""
    keys = [
        (wave, number if step.alone else len(steps))
        for number, (step, wave) in enumerate(zip(steps, waves, strict=True))
    ]
    rank = {key: position for position, key in enumerate(sorted(set(keys)))}
    return [rank[key] for key in keys]


def live_bytes(steps: Sequence[StepNeeds], waves: Sequence[int], buffer_bytes: Sequence[int]) -> list[int]:
    """For each wave the sum of the buffers that are live in it."""
    change = [0] * (max(waves, default=-1) + 2)
    for buffer, (first, last) in live_waves(steps, waves).items():
        change[first] += buffer_bytes[buffer]
        change[last + 1] -= buffer_bytes[buffer]
    return list(accumulate(change))[:-1]


def _burden(live: Sequence[int]) -> tuple[int, int, int]:
    return len(live), max(live, default=0), sum(live)


def waves_of(schedule: Schedule) -> list[int]:
    """The wave of each step of a schedule whose transients have no place yet."""
    needs = needs_of(schedule.steps, size_makers(schedule.steps, schedule.inputs))
    return order_dispatches(needs, [assumed_size(size) for size in schedule.transients])


@dataclass(frozen=True)
class OrderDispatchesPass(ModulePass):
    """Sort the dispatches and host calls of `@main` by wave; everything else stays as early as what it needs allows."""

    name = "order-dispatches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Reorder `@main`; raises FuselineError (E0305) where it is not outlined."""
        assert isinstance(ctx, CompilerContext)
        (schedule, made_of), block = read_main(ctx, op), main_function(op).body.block
        ranked = sorted(zip(waves_of(schedule), range(len(made_of)), strict=True))
        steps = [step for _, number in ranked if (step := made_of[number]) is not None]
        _sort(block, steps)


def _sort(block: Block, steps: Sequence[Operation]) -> None:
    """Put `steps` in order behind each other, each preceded by what it needs and has not been placed yet."""
    placed: set[Operation] = set()
    for step in (*steps, *block.ops):
        _place(block, step, placed)


def _place(block: Block, op: Operation, placed: set[Operation]) -> None:
    if op in placed or op.parent is not block:
        return
    placed.add(op)
    for operand in op.operands:
        if isinstance(operand.owner, Operation):
            _place(block, operand.owner, placed)
    op.detach()
    block.add_op(op)


EXPORT = OrderDispatchesPass
