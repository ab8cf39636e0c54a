"""IREE as a target: fusion forms dispatches within its limits, its compiler makes code of them, and its runtime runs
that between the operators of the host."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fuseline.analysis.structured import Kind
from fuseline.dispatch.candidate import DispatchCandidate
from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext
from fuseline.program.schedule import PackedConstants, Schedule
from fuseline.report.records import OpRemark
from fuseline.runtime.artifact import Artifact
from fuseline.targets.compiled_kernel import CompiledKernel
from fuseline.targets.iree import limits
from fuseline.targets.iree.backends import STACK_BYTES, Backend
from fuseline.targets.iree.build import Built, build
from fuseline.targets.iree.compiler import compile_text
from fuseline.targets.iree.launched import Launched, launched, loose_executables
from fuseline.targets.iree.stage_calls import complete_calls
from fuseline.targets.iree.stage_functions import staged
from fuseline.targets.null.counts import counted_kernel
from fuseline.targets.target import Refusal, Target, TargetDescription

_SPLIT, _LOOSE = "split", "left to IREE's own formation"
_APART = "left as it was formed, parts of concats copied"

RULE = "iree"
"""Who says in reports that a dispatch was made smaller for IREE."""


class IreeTarget(Target):
    """One backend of IREE. A program is an artifact of the runtime whose host calls run IREE's code; it needs the
    packages of the extra `iree` where it is compiled and where it runs. `built`: the last program that IREE compiled,
    `figures`: what it counts of it."""

    makes_artifacts = runs_programs = True

    def __init__(self, backend: Backend, threads: int | None = None, numerics: str = "default") -> None:
        self.backend = backend
        self.description = TargetDescription(
            name=f"iree:{backend.name}",
            threads=threads if threads is not None else len(os.sched_getaffinity(0)),
            scratch_bytes_limit=STACK_BYTES,
            image_bytes_limit=1,
            band_bytes_limit=1,
            binding_limit=32,
            arms_limit=1,
            roots_limit=1,
            code_limit=0,
            numerics=numerics,
        )
        self.figures: Mapping[str, int] = {}
        self.built: Built | None = None
        self._refused: dict[tuple[str, ...], tuple[str, str]] = {}
        self._apart: dict[tuple[str, ...], tuple[str, str]] = {}
        self._too_long: frozenset[str] = frozenset()

    def legal(self, candidate: DispatchCandidate) -> Refusal | None:
        """Why IREE's code generation fails on such a dispatch, as far as that is known."""
        return limits.refusal_of(candidate)

    def takes_op(self, op: Operation, kind: Kind) -> Refusal | None:
        """Which operation of an op's body the backend has no code for, or why it takes too long."""
        del kind
        refused = limits.long_rank(op)
        if refused is not None:
            return refused
        for inner in op.walk():
            element = str(inner.operands[0].type) if inner.operands else ""
            if inner is not op and self.backend.lacks(inner.name, element):
                return Refusal(
                    "iree-operation", f"IREE's {self.backend.name} has no code for {inner.name} of {element}"
                )
        return None

    def take_program(self, module: ModuleOp, ctx: CompilerContext, *, splits: bool) -> ModuleOp | None:
        """`@main` with a call of IREE's code for each part between operators of the host; None where dispatches have to
        be smaller first. Raises FuselineError: E0503 without the compiler, E0307 for what it does not compile in any
        form."""
        self._too_long = frozenset()
        stages = staged(module.clone(), ctx)
        if not stages.calls:
            return None
        known = launched(module)
        built = self._built(stages.native, ctx, known, splits)
        if built is None:
            return None
        self._remark(ctx, known)
        self.built, self.figures = built, built.compiled.figures
        device = self.backend.device(self.description.threads)
        complete_calls(stages, ctx, built.compiled.code, built.program.parameters, device)
        return stages.host

    def _built(
        self, native: ModuleOp, ctx: CompilerContext, known: Mapping[str, Launched], splits: bool
    ) -> Built | None:
        """IREE's code; None where dispatches of several ops failed that may be split."""
        loose = loose_executables(known)
        compile_ = partial(compile_text, arguments=self.backend.arguments(self.description.numerics))
        while True:
            apart = {name for name, one in known.items() if self._apart.keys() & {*one.members}}
            built = build(native, ctx, loose, apart, compile_)
            if built.compiled.code:
                return built
            if misplaced := built.misplaced:
                for name, message in misplaced.items():
                    self._apart |= dict.fromkeys(known[name].members, (_APART, message))
                continue
            if built.refused.keys() <= loose:
                said = next(iter((*built.elsewhere, *built.refused.values())))
                raise FuselineError("E0307", f"IREE does not compile the program: {said}")
            if self._divide(built, known, splits):
                return None
            loose |= built.refused.keys()

    def _divide(self, built: Built, known: Mapping[str, Launched], splits: bool) -> bool:
        """Note what was refused; whether some of it is to be formed anew, in smaller dispatches."""
        divisible = [
            name
            for name in built.refused
            if splits and known[name].is_divisible and not self._refused.keys() & {*known[name].members}
        ]
        for name, message in built.refused.items():
            how = _SPLIT if name in divisible else _LOOSE
            self._refused |= dict.fromkeys(known[name].members, (how, message))
        self._too_long = frozenset(divisible)
        return bool(divisible)

    def _remark(self, ctx: CompilerContext, known: Mapping[str, Launched]) -> None:
        """Say of each dispatch that was refused what IREE said."""
        nodes = {member: one.nodes for one in known.values() for members in one.members for member in members}
        for members, (how, message) in (*self._apart.items(), *self._refused.items()):
            found = sorted({node for member in members for node in nodes.get(member, ())})
            detail = f"{how}: IREE said {message!r}"
            ctx.records.remarks.append(
                OpRemark(rule=RULE, code="iree-codegen", op=members[0], detail=detail, nodes=tuple(found))
            )

    def compile_executables(
        self, entries: Sequence[FuncOp], resources: Mapping[str, Any], *, splits: bool = False, merges: bool = False
    ) -> list[CompiledKernel]:
        """What each dispatch counts; the code is that of the whole program (`take_program`). Those that IREE refused
        there are too long."""
        del resources, splits, merges
        counted = [counted_kernel(entry, "iree", entry.sym_name.data) for entry in entries]
        return [replace(kernel, too_long=kernel.symbol in self._too_long) for kernel in counted]

    def counted(self) -> Mapping[str, Any]:
        """IREE's own figures: transients are its, in place of those that our plan would take."""
        if not self.figures:
            return {}
        return {"iree": dict(self.figures), "transient_bytes": self.figures.get("transient_bytes", 0)}

    def assemble(
        self,
        schedule: Schedule,
        kernels: Mapping[str, CompiledKernel],
        constants: PackedConstants,
        *,
        records: bytes,
        metadata: Mapping[str, Any],
    ) -> Artifact:
        """The artifact whose host calls run IREE's code; what lies between is the CPU target's."""
        from fuseline.targets.cpu.target import CpuTarget

        del kernels  # IREE's code is a constant of the calls
        cpu = CpuTarget(None, self.description.threads, numerics=self.description.numerics)
        return cpu.assemble(schedule, {}, constants, records=records, metadata=metadata)
