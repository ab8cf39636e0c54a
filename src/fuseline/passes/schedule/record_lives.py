"""When which part of the arena is in use, as records for reports.

wave        0     1     2     3
offset 0    [ a       ]                 a: written in wave 0, read last in wave 1
                        [ c         ]
offset 64         [ b         ]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fuseline.buffers import Operand
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim
from fuseline.program.schedule import Schedule, bytes_of
from fuseline.program.steps import DispatchStep, Step, flat_steps
from fuseline.report.launches import dispatches_launched
from fuseline.report.records import DispatchRecord, TransientRecord


def transient_records(schedule: Schedule, dispatches: Iterable[DispatchRecord], threads: int) -> list[TransientRecord]:
    """What lies in the arena of a placed schedule, tensor by tensor in the order in which they are written, and the
    scratch of each wave. A part of a tensor that is written by itself (of a concat) is one of its own. Sizes that only
    the run knows are taken at their bounds, or as they are assumed elsewhere."""
    launches = [step.executable for step in flat_steps(schedule.steps) if isinstance(step, DispatchStep)]
    lives = _Lives(dispatches_launched(dispatches, launches))
    for step in schedule.steps:
        lives.add(step)
    return [*lives.found, *_scratch(schedule, threads)]


def _scratch(schedule: Schedule, threads: int) -> Iterator[TransientRecord]:
    for wave, place in (schedule.scratch or {}).items():
        if place.stride:
            size = place.stride * threads
            yield TransientRecord(offset=_number(place.offset), bytes=size, first=wave, last=wave, scratch=True)


class _Lives:
    """Records as they grow; `found[i]` is of the last tensor at an offset where `at[offset]` is `i`. `launched` are the
    dispatches of the steps that are some, in order; None for one that no record tells of."""

    def __init__(self, launched: Iterable[DispatchRecord | None]) -> None:
        self.found: list[TransientRecord] = []
        self._at: dict[tuple[int, int], int] = {}
        self._launched = iter(launched)

    def add(self, step: Step) -> None:
        """What a step, or those of a loop, read and write."""
        for inner in flat_steps([step]):
            writer = self._name(inner)
            for operand in inner.operands:
                self._read(operand, step.wave)
            for result in inner.results:
                self._write(result, step.wave, writer)

    def _name(self, step: Step) -> str:
        dispatch = next(self._launched) if isinstance(step, DispatchStep) else None
        return step.label if dispatch is None else dispatch.name

    def _read(self, operand: Operand | None, wave: int) -> None:
        """The read tensor lives on, and so does every part of it."""
        if operand is None or operand.buffer.segment != "arena":
            return
        first = _number(operand.buffer.offset)
        last = first + _number(bytes_of(operand))
        for (begin, end), number in self._at.items():
            if begin < last and first < end:
                self.found[number].last = max(self.found[number].last, wave)

    def _write(self, result: Operand | None, wave: int, writer: str) -> None:
        if result is None or result.buffer.segment != "arena":
            return
        first, size = _number(result.buffer.offset), _number(bytes_of(result))
        for place in [(a, b) for a, b in self._at if a < first + size and first < b]:
            del self._at[place]
        self._at[first, first + size] = len(self.found)
        self.found.append(TransientRecord(offset=first, bytes=size, first=wave, last=wave, dispatch=writer))


def _number(size: Dim) -> int:
    return size if isinstance(size, int) else assumed_size(size)
