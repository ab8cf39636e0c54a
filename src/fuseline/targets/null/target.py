"""A target that generates nothing: every dispatch is accepted and counted, nothing can be run."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NoReturn

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fuseline.analysis.extents_key import extents_key
from fuseline.analysis.structural_key import AttributeNumbers, structural_key
from fuseline.analysis.structured import Kind
from fuseline.dispatch.arm_entries import split_arms
from fuseline.dispatch.candidate import DispatchCandidate
from fuseline.errors import FuselineError
from fuseline.program.schedule import PackedConstants, Schedule
from fuseline.targets.compiled_kernel import CompiledKernel, kernel_of_arms
from fuseline.targets.dispatch_caps import ANY_DISPATCH, DispatchCaps
from fuseline.targets.listed_program import ListedProgram
from fuseline.targets.null.counts import counted_kernel
from fuseline.targets.runtime_form import host_calls, program_of
from fuseline.targets.target import Refusal, Target, TargetDescription


class NullTarget(Target):
    """Counts, for the target of a description, which takes dispatches within `caps`."""

    def __init__(self, description: TargetDescription, caps: DispatchCaps = ANY_DISPATCH) -> None:
        self.description, self.caps = description, caps

    def legal(self, candidate: DispatchCandidate) -> Refusal | None:
        """The first limit that a dispatch is beyond."""
        return self.caps.refusal(candidate) if self.caps is not ANY_DISPATCH else None

    def takes_op(self, op: Operation, kind: Kind) -> Refusal | None:
        """Why the limits leave out an op wherever it is."""
        return self.caps.op_refusal(op, kind) if self.caps is not ANY_DISPATCH else None

    def compile_executables(
        self, entries: Sequence[FuncOp], resources: Mapping[str, Any], *, splits: bool = False, merges: bool = False
    ) -> list[CompiledKernel]:
        """A record without code per entry function; what would be equal code, arms of dispatches included, has one
        symbol; so has, with `merges`, what is equal up to extents, since nothing says that sharing it takes time."""
        del resources
        names, numbers, key = dict[Hashable, str](), AttributeNumbers(), extents_key if merges else structural_key
        return [self._count(entry, names, lambda arm: key(arm, numbers)) for entry in entries]

    def _count(self, entry: FuncOp, names: dict[Hashable, str], key: Callable[[FuncOp], Hashable]) -> CompiledKernel:
        arms = split_arms(entry)
        symbols = [names.setdefault(key(arm.entry), f"kernel_{len(names)}") for arm in arms]
        counted = [counted_kernel(arm.entry, "null", symbol) for arm, symbol in zip(arms, symbols, strict=True)]
        return kernel_of_arms(entry.sym_name.data, arms, counted)

    def assemble(
        self,
        schedule: Schedule,
        kernels: Mapping[str, CompiledKernel],
        constants: PackedConstants,
        *,
        records: bytes,
        metadata: Mapping[str, Any],
    ) -> NullProgram:
        """The records and the program's boundary."""
        del kernels, constants
        return NullProgram(program_of(schedule, host_calls(schedule)), records, metadata)


class NullProgram(ListedProgram):
    """What the null target assembles in place of an artifact."""

    def run(self, feeds: Mapping[str, Any]) -> NoReturn:
        """Raises E0305: there is no code."""
        del feeds
        raise FuselineError("E0305", "the null target generates no code to run", hint="compile for cpu or interpreter")

    def save(self, path: str | os.PathLike[str]) -> NoReturn:
        """Raises E0502: there is no code to save."""
        raise FuselineError(
            "E0502", "the null target generates no code to save", node=os.fspath(path), hint="compile for cpu"
        )
