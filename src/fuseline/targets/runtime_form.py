"""A schedule's values as the runtime has them: every `Dim` in them a `Size`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fuseline.buffers import BufferRef
from fuseline.ir.dim import Dim, Expr
from fuseline.ir.dim_json import to_json
from fuseline.program.schedule import Schedule
from fuseline.program.steps import HostStep, MoveStep
from fuseline.runtime.program import HostCall, Program, Step
from fuseline.runtime.sizes import Size, size_from_json


def runtime_size(size: Dim) -> Size:
    """One size."""
    return size_from_json(to_json(size))


def runtime_form(value: Any, place: Callable[[BufferRef], BufferRef] | None = None) -> Any:
    """Buffer references, operands, specs, or tuples of them; `place` says first what each buffer reference is in the
    program."""
    if isinstance(value, Expr):
        return runtime_size(value)
    if isinstance(value, MoveStep):
        return value.mapped(lambda part: runtime_form(part, place))
    if not isinstance(value, tuple):
        return value
    kind: Any = type(value)  # pyright: ignore[reportUnknownArgumentType]
    fields = [
        runtime_form(field, place)
        for field in (place(value) if isinstance(value, BufferRef) and place is not None else value)
    ]  # pyright: ignore[reportUnknownVariableType]
    return kind(*fields) if hasattr(kind, "_fields") else kind(fields)


def program_of(schedule: Schedule, steps: Sequence[Step]) -> Program:
    """The program of these steps with the schedule's border, sizes and memory."""
    return Program(
        inputs=runtime_form(schedule.inputs),
        outputs=runtime_form(schedule.outputs),
        steps=tuple(steps),
        arena_bytes=runtime_size(
            schedule.arena_bytes if schedule.initial_arena_bytes is None else schedule.initial_arena_bytes
        ),
        symbols=dict(schedule.symbols),
        requirements=runtime_form(schedule.requirements),
        slots=schedule.slots,
    )


def host_call(step: HostStep, place: Callable[[BufferRef], BufferRef] | None = None) -> HostCall:
    """A host operator of a schedule; `place` as in `runtime_form`."""
    operands, results = runtime_form((step.operands, step.results), place)
    code = runtime_form(step.code)
    return HostCall(step.executor, step.node, operands, results, step.label, runtime_size(step.arena_bytes), code)


def host_calls(schedule: Schedule) -> list[HostCall]:
    """The host operators of a schedule, without their operands: all that a target without code can run."""
    return [
        HostCall(step.executor, step.node, (), (), step.label) for step in schedule.steps if isinstance(step, HostStep)
    ]
