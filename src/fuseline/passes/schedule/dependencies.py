"""What steps wait for: those that write what they read, and those that make their sizes known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fuseline.buffers import Operand, TensorSpec
from fuseline.ir import dim as d
from fuseline.program.schedule import bytes_of
from fuseline.program.steps import HostStep, LoopStep, Step, extents_of


@dataclass(frozen=True, slots=True)
class StepNeeds:
    """What ordering must know of a step: the steps it depends on (all earlier in the list), the buffers it reads and
    writes (by number), and whether it must be alone (a host call returns to Python, a loop has waves of its own:
    nothing may run beside them)."""

    after: tuple[int, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    alone: bool = False


def earliest_waves(steps: Sequence[StepNeeds]) -> list[int]:
    """Each step in the first wave after those of the steps it depends on."""
    waves: list[int] = []
    for step in steps:
        waves.append(max((waves[i] + 1 for i in step.after), default=0))
    return waves


def live_waves(steps: Sequence[StepNeeds], waves: Sequence[int]) -> dict[int, tuple[int, int]]:
    """First and last wave of each buffer that a step touches."""
    found: dict[int, tuple[int, int]] = {}
    for step, wave in zip(steps, waves, strict=True):
        for buffer in (*step.reads, *step.writes):
            first, last = found.get(buffer, (wave, wave))
            found[buffer] = min(first, wave), max(last, wave)
    return found


def size_makers(steps: Sequence[Step], inputs: Iterable[TensorSpec]) -> dict[str, int]:
    """The host call (by number) that is the first to know each symbol which the inputs do not give."""
    known = {symbol.name for spec in inputs for size in spec.dims for symbol in d.symbols(size)}
    makers: dict[str, int] = {}
    for number, step in enumerate(steps):
        for operand in step.results if isinstance(step, HostStep) else ():
            for symbol in (symbol.name for size in operand.dims for symbol in d.symbols(size)):
                if symbol not in known:
                    makers.setdefault(symbol, number)
    return makers


def needs_of(steps: Sequence[Step], makers: Mapping[str, int] | None = None) -> list[StepNeeds]:
    """What ordering must know of each step, those of before placement: buffers are numbered as the schedule's
    transients are."""
    writers: dict[tuple[str, int], list[tuple[int, Operand]]] = {}
    out: list[StepNeeds] = []
    for number, step in enumerate(steps):
        makes = {(makers or {}).get(symbol, number) for symbol in _symbols(step)} - {number}
        written = {
            before
            for read in step.operands
            for before, made in writers.get(read.buffer[:2], ())
            if not _apart(read, made)
        }
        reads, writes = (_transients(side) for side in (step.operands, step.results))
        out.append(StepNeeds(tuple(sorted(makes | written)), reads, writes, isinstance(step, HostStep | LoopStep)))
        for operand in step.results:
            writers.setdefault(operand.buffer[:2], []).append((number, operand))
    return out


def _symbols(step: Step) -> set[str]:
    sizes = [*extents_of(step), *(size for operand in (*step.operands, *step.results) for size in operand.dims)]
    return {symbol.name for size in sizes for symbol in d.symbols(size)}


def _transients(operands: Iterable[Operand]) -> tuple[int, ...]:
    return tuple(operand.buffer.number for operand in operands if operand.buffer.segment == "transient")


def _apart(a: Operand, b: Operand) -> bool:
    """Whether two tensors of one buffer are known to lie in different parts of it."""
    if a.buffer.offset == b.buffer.offset:
        return False
    gaps = (
        d.lower_bound(d.sub(d.sub(late.buffer.offset, early.buffer.offset), bytes_of(early)))
        for early, late in ((a, b), (b, a))
    )
    return any(gap is not None and gap >= 0 for gap in gaps)
