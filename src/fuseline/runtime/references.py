"""References inside an artifact: entries, kernels and places must point at something that is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fuseline.runtime.program import Arm, HostCall, Loop, Place, Program, Step, Walk

ENTRIES = ("run", "worker")
"""Offsets that every image must give: the scheduler's run entry and the workers' main function."""


def check_references(program: Program, code_bytes: int, entries: Mapping[str, int], constant_bytes: Sequence[int]) -> None:
    """Raise ValueError for an entry or kernel outside the code, or a place in a segment that does not exist."""
    for name in ENTRIES:
        if name not in entries:
            raise ValueError(f"no entry {name!r}")
    kernels = [arm.kernel for step in program.steps for arm in _arms(step)]
    for offset in (*entries.values(), *kernels):
        if not 0 <= offset < code_bytes:
            raise ValueError(f"entry at {offset} lies outside the code")
    counts = {"arena": 1, "constant": len(constant_bytes), "input": len(program.inputs), "output": len(program.outputs), "held": program.slots}
    _check_specs(program)
    for place in (place for step in program.steps for place in _places(step)):
        if not 0 <= place.number < counts[place.segment]:
            raise ValueError(f"{place.segment} {place.number} does not exist")
        limit = _limit(program, place, constant_bytes)
        if isinstance(place.offset, int) and (place.offset < 0 or (limit is not None and place.offset > limit)):
            raise ValueError(f"offset {place.offset} lies outside {place.segment} {place.number}")


def _check_specs(program: Program) -> None:
    for spec in (*program.inputs, *program.outputs):
        if spec.slot is not None and not 0 <= spec.slot < program.slots:
            raise ValueError(f"slot {spec.slot} of {spec.name} does not exist")
        if spec.is_index and len(spec.dims) != 1:
            raise ValueError(f"the index {spec.name} does not stand for one size")


def _limit(program: Program, place: Place, constant_bytes: Sequence[int]) -> int | None:
    """Bytes of the segment where they are known."""
    if place.segment == "constant":
        return constant_bytes[place.number]
    grows = any(isinstance(step, HostCall) and step.arena_bytes != 0 for step in program.steps)
    return program.arena_bytes if place.segment == "arena" and isinstance(program.arena_bytes, int) and not grows else None


def _arms(step: Step) -> Sequence[Arm]:
    if isinstance(step, HostCall):
        return ()
    return [arm for command in step.commands for arm in command.arms] if isinstance(step, Loop) else step.arms


def _places(step: Step) -> Iterator[Place]:
    for arm in _arms(step):
        yield from arm.bindings
        if isinstance(step, Loop):
            yield from _walked_places(step, arm)
    if isinstance(step, HostCall):
        yield from (tensor.place for tensor in (*step.inputs, *step.outputs) if tensor is not None)


def _walked_places(loop: Loop, arm: Arm) -> Iterator[Place]:
    """Where bindings get to in the iterations of a loop besides their own places; raises ValueError for walks that do not fit their bindings."""
    if len(arm.walks) != len(arm.bindings):
        raise ValueError("a binding inside a loop without a walk")
    for place, walk in zip(arm.bindings, arm.walks, strict=True):
        if walk.lag not in (0, 1) or (walk.lag and (walk.special is None or walk.at != 0)):
            raise ValueError(f"a walk that lags {walk.lag} iterations begins nowhere")
        if walk.special is not None:
            yield walk.special
        steps = _steps(loop, walk)
        if isinstance(place.offset, int) and isinstance(walk.stride, int) and steps is not None:
            yield place._replace(offset=place.offset + steps * walk.stride)


def _steps(loop: Loop, walk: Walk) -> int | None:
    """How many strides a walk goes at most, where that is known."""
    if walk.alternates:
        return 1
    return max(loop.trips - 1 - walk.lag, 0) if isinstance(loop.trips, int) else None
