"""The programs of a compile with all that they were made of: kernels as kernel IR, entry functions, schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects.func import FuncOp

from fuseline.compilation import compile_program
from fuseline.compile_options import CompileOptions
from fuseline.dispatch.executable_entry import entry_of
from fuseline.errors import FuselineError
from fuseline.ir.flow import ExecutableOp
from fuseline.lowering import Lowering
from fuseline.report.records import CompileRecord
from fuseline.runtime.artifact import Artifact
from fuseline.targets.cpu.kernel_ir.types import Kernel
from fuseline.targets.cpu.target import CpuTarget


@dataclass(frozen=True, eq=False)
class CheckedProgram:
    """A program of a compile. `role` is `main`, `fallback` or `branch`; `kernels` are kernel IR by symbol, none for a
    target that keeps none."""

    lowering: Lowering
    role: str
    kernels: Mapping[str, Kernel]
    entries: Mapping[str, FuncOp] = field(init=False)

    def __post_init__(self) -> None:
        executables = [op for op in self.lowering.module.ops if isinstance(op, ExecutableOp)]
        object.__setattr__(self, "entries", {op.sym_name.data: entry_of(op) for op in executables})

    @property
    def artifact(self) -> Artifact:
        """The finished program, without its fallback."""
        return self.lowering.artifact._replace(fallback=None)

    @property
    def record(self) -> CompileRecord:
        """What the compile decided and counted."""
        return self.lowering.ctx.records


class _Observer:
    """Keeps each program as it is finished: branches, then the fallback, then the program itself."""

    def __init__(self) -> None:
        self.finished: list[Lowering] = []

    def target_made(self, target: Any) -> None:
        if isinstance(target, CpuTarget):
            target.keep_code()

    def lowered(self, lowering: Lowering) -> None:
        self.finished.append(lowering)


def checked_programs(source: Any, options: CompileOptions) -> list[CheckedProgram]:
    """The program of `source`, then its fallback and the programs of branches. Raises what compiling raises, and E0501
    for a target that makes no artifacts which run here."""
    observer = _Observer()
    compile_program(source, replace(options, observer=observer))
    programs = [_checked(lowering, lowering is observer.finished[-1]) for lowering in reversed(observer.finished)]
    main = programs[0].lowering
    if not isinstance(main.target, CpuTarget):
        hint = "check with --target cpu; for other targets `fuseline run --check` compares outputs"
        name = main.target.description.name
        raise FuselineError("E0501", f"the target {name} has no kernels that could be checked one by one", hint=hint)
    return programs


def _checked(lowering: Lowering, is_main: bool) -> CheckedProgram:
    role = "main" if is_main else "fallback" if lowering.ctx.literal_broadcasts else "branch"
    target = lowering.target
    return CheckedProgram(lowering, role, target.kept_code if isinstance(target, CpuTarget) else {})
