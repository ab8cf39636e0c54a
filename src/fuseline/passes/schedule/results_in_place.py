"""Which results take the place of an operand that dies where they are born, and why the others do not.

The target says of a dispatch which results may lie where an operand does, as far as the dispatch itself goes
(`CompiledKernel.in_place`). Whether anything else needs the operand is read off the schedule here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from fuseline.buffers import Operand
from fuseline.ir.dim import Dim
from fuseline.passes.schedule.dependencies import StepNeeds, live_waves
from fuseline.program.schedule import InPlaceDecision, bytes_of
from fuseline.program.steps import DispatchStep, Step

InPlace = Callable[[DispatchStep], Sequence[tuple[int, int]]]
"""Answers for a dispatch which results (by index) may overwrite which tensor operand (by index)."""


def results_in_place(
    steps: Sequence[Step], needs: Sequence[StepNeeds], transients: Sequence[Dim], in_place: InPlace
) -> list[InPlaceDecision]:
    """What becomes of every result that the target would let overwrite an operand, in the order of `steps` (placed in
    waves). `transients` are the bytes of the buffers."""
    planner = _Planner(steps, needs, transients)
    return [decision for step in steps if isinstance(step, DispatchStep) for decision in planner.of(step, in_place)]


class _Planner:
    def __init__(self, steps: Sequence[Step], needs: Sequence[StepNeeds], transients: Sequence[Dim]) -> None:
        waves = [step.wave for step in steps]
        self.transients = transients
        self.live: Mapping[int, tuple[int, int]] = live_waves(needs, waves)
        touching = zip(needs, waves, strict=True)
        self.users = Counter((wave, buffer) for need, wave in touching for buffer in {*need.reads, *need.writes})
        self.given: set[int] = set()
        self.placed: set[int] = set()

    def of(self, step: DispatchStep, in_place: InPlace) -> Iterator[InPlaceDecision]:
        """The decisions of one dispatch; the first operand that a result can take the place of is the one."""
        for result, operand in in_place(step):
            written, read = step.results[result], step.operands[operand]
            if written.buffer.segment != "transient" or read.buffer.segment != "transient":
                yield InPlaceDecision(-1, -1, "not-transient")
                continue
            numbers = written.buffer.number, read.buffer.number
            refusal = self._refusal(step, written, read)
            if not refusal:
                self.placed.add(numbers[0])
                self.given.add(numbers[1])
            yield InPlaceDecision(*numbers, refusal)

    def _refusal(self, step: DispatchStep, written: Operand, read: Operand) -> str:
        result, operand = written.buffer.number, read.buffer.number
        bindings = Counter(one.buffer.number for one in (*step.operands, *step.results) if _is_transient(one))
        if not all(self._is_whole(one) for one in (written, read)):
            return "part-of-a-buffer"
        if bindings[result] > 1 or bindings[operand] > 1:
            return "bound-twice"
        if self.live[operand][1] != step.wave:
            return "read-later"
        if self.live[result][0] != step.wave:
            return "written-earlier"
        if self.users[step.wave, operand] > 1 or self.users[step.wave, result] > 1:
            return "side-by-side"
        return "place-taken" if result in self.placed or operand in self.given else ""

    def _is_whole(self, operand: Operand) -> bool:
        return operand.buffer.offset == 0 and bytes_of(operand) == self.transients[operand.buffer.number]


def _is_transient(operand: Operand) -> bool:
    return operand.buffer.segment == "transient"
