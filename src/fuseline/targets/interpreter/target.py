"""The interpreter as a target of the pipeline: the executables' IR is the code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.func import FuncOp

from fuseline.program.schedule import PackedConstants, Schedule
from fuseline.targets.compiled_kernel import CompiledKernel
from fuseline.targets.interpreter.session import InterpretedProgram
from fuseline.targets.null.counts import counted_kernel
from fuseline.targets.runtime_form import host_calls, program_of
from fuseline.targets.target import Target, TargetDescription


class InterpreterTarget(Target):
    """Keeps each executable's function; `assemble` joins them with the schedule."""

    runs_programs = True

    def __init__(self, numerics: str = "default") -> None:
        self.description = TargetDescription("interpreter", numerics=numerics)
        self._entries: dict[str, FuncOp] = {}

    def compile_executables(
        self, entries: Sequence[FuncOp], resources: Mapping[str, Any], *, splits: bool = False, merges: bool = False
    ) -> list[CompiledKernel]:
        """No code: what each dispatch counts. The functions are kept by the symbol of their entry."""
        del resources
        self._entries = {entry.sym_name.data: entry for entry in entries}
        return [counted_kernel(entry, "interpreter", entry.sym_name.data) for entry in entries]

    def assemble(
        self,
        schedule: Schedule,
        kernels: Mapping[str, CompiledKernel],
        constants: PackedConstants,
        *,
        records: bytes,
        metadata: Mapping[str, Any],
    ) -> InterpretedProgram:
        """The program that `session()` runs."""
        del constants
        entries = {executable: self._entries[kernel.symbol] for executable, kernel in kernels.items()}
        return InterpretedProgram(schedule, entries, program_of(schedule, host_calls(schedule)), records, metadata)
