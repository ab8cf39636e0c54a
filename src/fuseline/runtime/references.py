"""References inside an artifact: entries, kernels and places must point at something that is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fuseline.runtime.program import Command, HostCall, Place, Program, Step

ENTRIES = ("run", "worker")
"""Offsets that every image must give: the scheduler's run entry and the workers' main function."""


def check_references(program: Program, code_bytes: int, entries: Mapping[str, int], constant_bytes: Sequence[int]) -> None:
    """Raise ValueError for an entry or kernel outside the code, or a place in a segment that does not exist."""
    for name in ENTRIES:
        if name not in entries:
            raise ValueError(f"no entry {name!r}")
    kernels = [arm.kernel for step in program.steps if isinstance(step, Command) for arm in step.arms]
    for offset in (*entries.values(), *kernels):
        if not 0 <= offset < code_bytes:
            raise ValueError(f"entry at {offset} lies outside the code")
    counts = {"arena": 1, "constant": len(constant_bytes), "input": len(program.inputs), "output": len(program.outputs), "held": program.slots}
    for spec in (*program.inputs, *program.outputs):
        if spec.slot is not None and not 0 <= spec.slot < program.slots:
            raise ValueError(f"slot {spec.slot} of {spec.name} does not exist")
    for place in (place for step in program.steps for place in _places(step)):
        if not 0 <= place.number < counts[place.segment]:
            raise ValueError(f"{place.segment} {place.number} does not exist")
        limit = _limit(program, place, constant_bytes)
        if isinstance(place.offset, int) and (place.offset < 0 or (limit is not None and place.offset > limit)):
            raise ValueError(f"offset {place.offset} lies outside {place.segment} {place.number}")


def _limit(program: Program, place: Place, constant_bytes: Sequence[int]) -> int | None:
    """Bytes of the segment where they are known."""
    if place.segment == "constant":
        return constant_bytes[place.number]
    grows = any(isinstance(step, HostCall) and step.arena_bytes != 0 for step in program.steps)
    return program.arena_bytes if place.segment == "arena" and isinstance(program.arena_bytes, int) and not grows else None


def _places(step: Step) -> Iterator[Place]:
    if isinstance(step, Command):
        yield from (place for arm in step.arms for place in arm.bindings)
    else:
        yield from (tensor.place for tensor in (*step.inputs, *step.outputs) if tensor is not None)
