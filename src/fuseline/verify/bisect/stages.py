"""A compile stopped behind one of its passes, and what the program means there: the interpreter tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from fuseline.compile_options import CompileOptions
from fuseline.ir.context import CompilerContext
from fuseline.ir.fuel import Fuel
from fuseline.passes.options import Step
from fuseline.phase_runner import pass_of, run_steps
from fuseline.pipeline import phases_of
from fuseline.source_program import prepare
from fuseline.targets import create_target
from fuseline.targets.interpreter import Interpreter
from fuseline.verify.bisect.halving import halved


@dataclass(frozen=True, eq=False)
class Stage:
    """A program with `ran` passes behind it; `place` is `phase/pass` of the last one, `input` before all."""

    module: ModuleOp
    ctx: CompilerContext
    ran: int
    place: str

    def outputs(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """What the program answers in float64, in the types that it was read with. Raises E0305 for IR that cannot be
        executed."""
        return Interpreter(self.module, self.ctx.resources, double=True).run(feeds)


class Stages:
    """Compiles of `source` with `limits` of fuel, stopped where it is asked."""

    def __init__(self, source: Any, options: CompileOptions, limits: Mapping[str, int]) -> None:
        self._source, self._limits = source, dict(limits)
        self._options = replace(options, progress=None, cache=False)
        self.steps: list[tuple[str, Step]] = [
            (phase, step) for phase, steps in phases_of(options).items() for step in steps
        ]

    def behind(self, count: int) -> Stage:
        """The program with the first `count` passes behind it, less those that there is no fuel for."""
        fuel = Fuel(dict(self._limits))
        options = replace(self._options, fuel=fuel)
        module, ctx = prepare(self._source, options, create_target(options.target, options.threads, options.numerics))
        run_steps(module, ctx, options, self.steps[:count])
        place = "/".join((self.steps[count - 1][0], self.steps[count - 1][1].name)) if count else "input"
        return Stage(module, ctx, count, place)

    def run_one(self, number: int, module: ModuleOp, ctx: CompilerContext) -> None:
        """Run pass `number` alone on a module. Raises what it raises."""
        pass_of(self.steps[number][1], self._options, ctx.target).apply(ctx, module)


def first_wrong(stages: Stages, shows: Any) -> int:
    """The number of the first pass behind which `shows` tells of a stage that it is wrong; all together are, and the
    program as it was read is not."""
    return halved(lambda count: bool(shows(stages.behind(count))), 0, len(stages.steps))[1] - 1
