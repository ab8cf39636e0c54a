"""A target that is asked everything twice, to see whether its answers depend on anything but the question."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fuseline.analysis.structured import Kind
from fuseline.dispatch.candidate import DispatchCandidate
from fuseline.program.schedule import PackedConstants, Schedule
from fuseline.targets.compiled_kernel import CompiledKernel
from fuseline.targets.outside.checked_target import CheckedTarget
from fuseline.targets.target import Refusal


class WatchedTarget(CheckedTarget):
    """`checked` again, with what is found `wrong` in what it does, and the `seconds` that each answer of `legal` took:
    the shorter of both times."""

    def __init__(self, checked: CheckedTarget) -> None:
        super().__init__(checked.target, checked.origin)
        self.wrong: list[str] = []
        self.seconds: list[float] = []

    def legal(self, candidate: DispatchCandidate) -> Refusal | None:
        """The answer, compared with that to the same question."""
        before = _texts([member.op for member in candidate.members])
        times = [time.perf_counter()]
        answers: list[Refusal | None] = []
        for _ in range(2):
            answers.append(super().legal(candidate))
            times.append(time.perf_counter())
        self.seconds.append(min(times[1] - times[0], times[2] - times[1]))
        self._same("legal()", *answers)
        self._unchanged("legal()", before, _texts([member.op for member in candidate.members]))
        return answers[0]

    def takes_op(self, op: Operation, kind: Kind) -> Refusal | None:
        """The answer, compared with that to the same question."""
        before = _texts([op])
        answer = super().takes_op(op, kind)
        self._same("takes_op()", answer, super().takes_op(op, kind))
        self._unchanged("takes_op()", before, _texts([op]))
        return answer

    def compile_executables(
        self, entries: Sequence[FuncOp], resources: Mapping[str, Any], *, splits: bool = False, merges: bool = False
    ) -> list[CompiledKernel]:
        """The kernels, compared with those for the same entries."""
        before = _texts(entries)
        first = super().compile_executables(entries, resources, splits=splits, merges=merges)
        again = super().compile_executables(entries, resources, splits=splits, merges=merges)
        self._same("compile_executables()", [_told(one) for one in first], [_told(one) for one in again])
        self._unchanged("compile_executables()", before, _texts(entries))
        return again

    def assemble(
        self,
        schedule: Schedule,
        kernels: Mapping[str, CompiledKernel],
        constants: PackedConstants,
        *,
        records: bytes,
        metadata: Mapping[str, Any],
    ) -> Any:
        """The program; what it writes to a file, compared with what it writes when it is made again."""
        made = [
            super(WatchedTarget, self).assemble(schedule, kernels, constants, records=records, metadata=metadata)
            for _ in range(2)
        ]
        self._same("assemble()", *[getattr(one, "content", None) for one in made])
        return made[0]

    def _same(self, what: str, first: object, again: object) -> None:
        if first != again:
            self._say(f"{what} answers otherwise when it is asked again: {_short(first)}, then {_short(again)}")

    def _unchanged(self, what: str, before: Sequence[str], after: Sequence[str]) -> None:
        if before != after:
            self._say(f"{what} changes the ops that it is asked about")

    def _say(self, problem: str) -> None:
        if problem not in self.wrong:
            self.wrong.append(problem)


def _texts(ops: Sequence[Operation]) -> list[str]:
    return [str(op) for op in ops]


def _told(kernel: CompiledKernel) -> tuple[object, ...]:
    """What of a kernel must be the same."""
    numbers = (kernel.workgroups, kernel.scratch_bytes, kernel.flops, kernel.bytes_read, kernel.bytes_written)
    return (kernel.symbol, kernel.object_code, kernel.family, *numbers, dict(kernel.notes), tuple(kernel.in_place))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
