"""What fuseline asks the NPU (docs/targets.md of fuseline)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fuseline.analysis.structured import Kind
from fuseline.dispatch.candidate import DispatchCandidate
from fuseline.program.schedule import DispatchStep, LoopStep, PackedConstants, Schedule, Step
from fuseline.targets.null.counts import counted_kernel
from fuseline.targets.target import CompiledKernel, Refusal, Target

from .machine import Machine, description
from .plan import plan_of
from .program import lines
from .vetoes import op_refusal, refusal


class NpuTarget(Target):
    """Makes a listing: a line of JSON for each dispatch, with the program of its cores below."""

    contract = 1
    suffix = ".npu"

    def __init__(self, machine: Machine, numerics: str) -> None:
        self.machine, self.description = machine, description(machine, numerics)
        self.kept: dict[str, str] = {}

    def legal(self, candidate: DispatchCandidate) -> Refusal | None:
        """The first veto."""
        return refusal(candidate)

    def takes_op(self, op: Operation, kind: Kind) -> Refusal | None:
        """All but doubles."""
        return op_refusal(op)

    def compile_executables(
        self, entries: Sequence[FuncOp], resources: Mapping[str, Any], *, splits: bool = False, merges: bool = False
    ) -> list[CompiledKernel]:
        """The listing of each dispatch as its code."""
        return [self._compiled(entry) for entry in entries]

    def _compiled(self, entry: FuncOp) -> CompiledKernel:
        plan, symbol = plan_of(entry, self.machine), entry.sym_name.data
        code = "\n".join(lines(plan.program))
        self.kept[symbol] = code
        counted = counted_kernel(entry, plan.facts["unit"], symbol)
        notes = {"program": plan.program, "facts": plan.facts}
        return replace(counted, object_code=code.encode(), notes=notes)

    def assemble(
        self,
        schedule: Schedule,
        kernels: Mapping[str, CompiledKernel],
        constants: PackedConstants,
        *,
        records: bytes,
        metadata: Mapping[str, Any],
    ) -> str:
        """The listing of the whole program."""
        return "".join(f"{line}\n" for line in self._listing(schedule, kernels))

    def _listing(self, schedule: Schedule, kernels: Mapping[str, CompiledKernel]) -> Iterator[str]:
        total = 0
        for number, (step, trips) in enumerate(_steps(schedule.steps)):
            if not isinstance(step, DispatchStep):
                what = type(step).__name__.removesuffix("Step").lower()
                yield f"{what} {json.dumps({'number': number, 'name': step.label})}"
                continue
            facts = kernels[step.executable].notes["facts"]
            total += facts["cycles"]["dispatch"] * trips
            yield f"dispatch {json.dumps({'number': number, 'name': step.label, 'times': trips, **facts})}"
            yield kernels[step.executable].object_code.decode()
        grid = f"{self.machine.rows}x{self.machine.columns}"
        yield f"total {json.dumps({'cycles': total, 'cores': grid, 'arena': str(schedule.arena_bytes)})}"

    def keep_code(self) -> None:
        """Listings are kept as they are."""

    def code_text(self, headings: Mapping[str, Sequence[str]], form: str) -> str:
        """`--emit asm`: the listing of each dispatch."""
        if form != "asm":
            raise NotImplementedError
        return "\n".join(
            "\n".join([*(f"; {line}" for line in heading), self.kept[symbol]]) for symbol, heading in headings.items()
        )


def _steps(steps: Sequence[Step]) -> Iterator[tuple[Step, int]]:
    """Each step with how often it runs; a loop whose trips only the run tells counts once."""
    for step in steps:
        if isinstance(step, LoopStep):
            trips = step.trips if isinstance(step.trips, int) else 1
            yield from ((inner, trips) for inner in step.steps)
        else:
            yield step, 1
