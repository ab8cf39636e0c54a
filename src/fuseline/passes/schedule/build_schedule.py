"""`@main` after outlining -> a `Schedule`: read, order, place transients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from fuseline.buffers import BufferRef
from fuseline.ir.context import CompilerContext
from fuseline.passes.schedule.dependencies import StepNeeds, live_waves, needs_of, size_makers
from fuseline.passes.schedule.order_dispatches import waves_of
from fuseline.passes.schedule.plan_transients import ArenaPlan, Transient, plan_transients
from fuseline.passes.schedule.poison_dead_memory import poison_dead_memory
from fuseline.passes.schedule.read_main import read_main
from fuseline.passes.schedule.results_in_place import InPlace, results_in_place
from fuseline.passes.schedule.scratch_strides import ScratchOf, scratch_strides
from fuseline.program.schedule import Schedule, ScratchPlace, moved_ref
from fuseline.program.steps import HostStep, MoveStep, Step, changed


def build_schedule(
    ctx: CompilerContext,
    module: ModuleOp,
    *,
    in_place: InPlace | None = None,
    scratch: ScratchOf | None = None,
    threads: int = 1,
    poison: bool = False,
) -> Schedule:
    """The schedule of `@main` in `module`, which must be outlined; with `poison` it overwrites dead memory after every
    step. `in_place` answers for a dispatch which results may overwrite which operand (None: none may), `scratch`
    how many bytes of scratch each of `threads` needs for it (None: scratch does not lie in the arena).

    Raises FuselineError (E0305) for what is not schedulable.
    """
    schedule = _ordered(read_main(ctx, module).schedule)
    needs = needs_of(schedule.steps)
    decisions = results_in_place(schedule.steps, needs, schedule.transients, in_place) if in_place is not None else []
    strides = scratch_strides(schedule.steps, scratch) if scratch is not None else {}
    lives = [*_lives(schedule, needs), *(Transient(stride * threads, wave, wave) for wave, stride in strides.items())]
    plan = _plan(schedule, lives, [(one.result, one.operand) for one in decisions if not one.refusal])
    places = zip(strides.items(), plan.offsets[len(schedule.transients) :], strict=True)
    placed = replace(
        _placed(schedule, plan),
        in_place=tuple(decisions),
        scratch={wave: ScratchPlace(offset, stride) for (wave, stride), offset in places} if scratch else None,
        live_bytes=plan.live,
    )
    return (
        replace(placed, steps=tuple(poison_dead_memory(placed.steps, needs, schedule.transients, plan.offsets)))
        if poison
        else placed
    )


def _ordered(schedule: Schedule) -> Schedule:
    """The steps by wave."""
    steps = [changed(step, wave=wave) for step, wave in zip(schedule.steps, waves_of(schedule), strict=True)]
    return replace(schedule, steps=tuple(sorted(steps, key=lambda step: step.wave)))


def _lives(schedule: Schedule, needs: Sequence[StepNeeds]) -> list[Transient]:
    """The transients with their lives; one that no step touches takes no memory."""
    live = live_waves(needs, [step.wave for step in schedule.steps])
    return [
        Transient(size, *live[i]) if i in live else Transient(0, 0, 0) for i, size in enumerate(schedule.transients)
    ]


def _plan(schedule: Schedule, lives: Sequence[Transient], in_place: Sequence[tuple[int, int]]) -> ArenaPlan:
    """Where the transients lie."""
    waves = [step.wave for step in schedule.steps]
    known_at = {symbol: waves[number] for symbol, number in size_makers(schedule.steps, schedule.inputs).items()}
    return plan_transients(lives, in_place, known_at)


def _placed(schedule: Schedule, plan: ArenaPlan) -> Schedule:
    """The schedule with every transient in the arena."""

    def place(ref: BufferRef) -> BufferRef:
        return (
            moved_ref(BufferRef("arena", 0, plan.offsets[ref.number]), ref.offset)
            if ref.segment == "transient"
            else ref
        )

    steps: list[Step] = [_with_refs(step, place) for step in schedule.steps]
    steps = [
        step._replace(arena_bytes=plan.bytes_at(step.wave)) if isinstance(step, HostStep) else step for step in steps
    ]
    return replace(
        schedule, steps=tuple(steps), arena_bytes=plan.bytes, initial_arena_bytes=plan.bytes_at(-1), transients=()
    )


def _with_refs(value: Any, place: Callable[[BufferRef], BufferRef]) -> Any:
    """A step, or a part of one, with every buffer reference replaced."""
    if isinstance(value, BufferRef):
        return place(value)
    if isinstance(value, MoveStep):
        return value.mapped(lambda part: _with_refs(part, place))
    if not isinstance(value, tuple):
        return value
    entries = [_with_refs(entry, place) for entry in value]  # pyright: ignore[reportUnknownVariableType]
    return type(value)(*entries) if hasattr(value, "_fields") else tuple(entries)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
