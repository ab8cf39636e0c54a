"""Scratch of a wave: what one thread needs of the dispatch that needs most, and where it lies in the arena."""

from __future__ import annotations

from collections.abc import Callable

from fuseline.buffers import BufferRef, Operand
from fuseline.passes.schedule.scratch_strides import scratch_strides
from fuseline.program.schedule import Schedule
from fuseline.program.steps import CopyStep, DispatchStep, LoopStep
from tests.unit.passes.schedule.test_build_schedule import _main, _one, _two  # pyright: ignore[reportPrivateUsage]

NEEDS = {"none": 0, "some": 100, "more": 300}


def _dispatch(name: str, wave: int) -> DispatchStep:
    return DispatchStep(name, name, (), (), (), wave)


def _copy(wave: int) -> CopyStep:
    return CopyStep(Operand(BufferRef("input"), (4,), "float32"), Operand(BufferRef("output"), (4,), "float32"), wave)


def test_the_most_of_each_wave_in_whole_lines() -> None:
    steps = [_dispatch("some", 0), _dispatch("more", 0), _copy(1), _dispatch("none", 2), _dispatch("some", 3)]
    assert scratch_strides(steps, lambda step: NEEDS[step.executable]) == {0: 384, 3: 128}


def test_a_loop_is_one_wave() -> None:
    loop = LoopStep(7, (_dispatch("some", 0), _copy(1), _dispatch("more", 2)), (), (), 4)
    assert scratch_strides([loop], lambda step: NEEDS[step.executable]) == {4: 384}


def _in_bytes(schedule: Schedule) -> list[tuple[int, set[int]]]:
    """For each dispatch its wave, and the bytes of the arena that its tensors lie in."""
    found: list[tuple[int, set[int]]] = []
    for step in schedule.steps:
        inside: set[int] = set()
        for operand in (*step.operands, *step.results):
            first = operand.buffer.offset
            if operand.buffer.segment == "arena":
                assert isinstance(first, int)
                inside |= set(range(first, first + 256))
        found.append((step.wave, inside))
    return found


def test_scratch_lies_beside_what_its_wave_touches(schedule_of: Callable[..., Schedule]) -> None:
    body = _one("a", "x") + _one("b", "a") + _two("c", "a", "b") + _one("r", "c")
    schedule = schedule_of(_main(body, "%r"), scratch=lambda step: 200 if step.executable == "two" else 0, threads=3)
    assert schedule.scratch is not None
    ((wave, (first, stride)),) = schedule.scratch.items()
    assert stride == 256 and isinstance(first, int)
    memory = set(range(first, first + 3 * stride))
    ((_, touched),) = [one for one in _in_bytes(schedule) if one[0] == wave]
    assert touched and not memory & touched
    assert schedule.arena_bytes == schedule.live_bytes == 3 * 256 + 3 * stride


def test_scratch_takes_the_place_of_what_is_dead(schedule_of: Callable[..., Schedule]) -> None:
    body = _two("a", "x", "x") + _one("b", "a") + _two("c", "a", "b") + _one("r", "c")
    schedule = schedule_of(_main(body, "%r"), scratch=lambda step: 256 if step.label == "one_entry" else 0, threads=1)
    assert schedule.arena_bytes == 3 * 256  # the last wave's lies where a and b were
    assert schedule_of(_main(body, "%r")).scratch is None
