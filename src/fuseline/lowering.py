"""The steps from outlined dispatches to an artifact, by the names that `pipeline.PHASES` orders. They read the IR and
add to one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from fuseline import branches, fallback, repeats
from fuseline.branches import CompileBranch
from fuseline.compile_options import CompileOptions
from fuseline.dispatch.executable_entry import entry_of
from fuseline.fallback import CompileFallback
from fuseline.ir.context import CompilerContext
from fuseline.ir.flow import ExecutableOp
from fuseline.passes.dedup.levels import contains
from fuseline.passes.schedule import (
    build_schedule,
    pack_constants,
    record_choices,
    record_statistics,
    share_constant_layouts,
)
from fuseline.repeats import CompileProgram
from fuseline.report.records import encode

if TYPE_CHECKING:
    from fuseline.program.schedule import PackedConstants, Schedule
    from fuseline.runtime.artifact import Artifact
    from fuseline.targets.compiled_kernel import CompiledKernel
    from fuseline.targets.target import Target


@dataclass(eq=False)
class Lowering:
    """A program whose dispatches are outlined, and what the steps have made of it so far.

    `compile_branch` compiles a branch of an `If` as a program of its own, `compile_program` what a loop of the host
    repeats, `compile_fallback` the whole model for sizes that broadcast; `splits`: see `Target.compile_executables`;
    `taken`: see `Target.take_program`. `planned` is the schedule with constants as the program has them, before kernels
    read them as others asked for them.
    """

    module: ModuleOp
    ctx: CompilerContext
    options: CompileOptions
    target: Target
    compile_branch: CompileBranch
    compile_program: CompileProgram
    splits: bool = False
    compile_fallback: CompileFallback | None = None
    kernels: dict[str, CompiledKernel] = field(default_factory=dict[str, "CompiledKernel"])
    branches: dict[str, list[Artifact]] = field(default_factory=dict[str, "list[Artifact]"])
    repeats: dict[str, list[Artifact]] = field(default_factory=dict[str, "list[Artifact]"])
    fallback: Any | None = None
    taken: ModuleOp | None = None
    planned: Schedule = field(init=False)
    schedule: Schedule = field(init=False)
    constants: PackedConstants = field(init=False)
    artifact: Artifact = field(init=False)


def _compile_executables(lowering: Lowering) -> None:
    """The kernel of each executable, by its name."""
    executables = [op for op in lowering.module.ops if isinstance(op, ExecutableOp)]
    entries = [entry_of(op) for op in executables]
    merges = contains(lowering.options.dedup, "shapes")
    lowering.taken = lowering.target.take_program(lowering.module, lowering.ctx, splits=lowering.splits)
    compiled = lowering.target.compile_executables(
        entries, lowering.ctx.resources, splits=lowering.splits, merges=merges
    )
    lowering.kernels = {op.sym_name.data: kernel for op, kernel in zip(executables, compiled, strict=True)}


def _compile_branches(lowering: Lowering) -> None:
    if lowering.target.makes_artifacts:
        lowering.branches = branches.compile_branches(
            lowering.module, lowering.ctx, lowering.options, lowering.compile_branch
        )
        lowering.repeats = repeats.compile_repeats(lowering.module, lowering.options, lowering.compile_program)


def _compile_fallback(lowering: Lowering) -> None:
    if lowering.target.runs_programs and lowering.compile_fallback is not None:
        ctx = lowering.ctx
        lowering.fallback = fallback.compile_fallback(ctx.taken_equal, ctx.records, lowering.compile_fallback)


def _build_schedule(lowering: Lowering) -> None:
    kernels, poison = lowering.kernels, lowering.options.poison
    lowering.planned = lowering.schedule = build_schedule.build_schedule(
        lowering.ctx,
        lowering.module,
        in_place=lambda step: kernels[step.executable].in_place,
        scratch=lambda step: kernels[step.executable].scratch_bytes,
        threads=lowering.target.description.threads,
        poison=poison,
    )


def _share_constant_layouts(lowering: Lowering) -> None:
    """Kernels that read constants as other kernels asked for them, and the steps that launch them."""
    executables = [op for op in lowering.module.ops if isinstance(op, ExecutableOp)]
    lowering.schedule, lowering.kernels = share_constant_layouts.share_constant_layouts(
        lowering.schedule,
        lowering.kernels,
        {op.sym_name.data: entry_of(op) for op in executables},
        lowering.target,
        lowering.ctx.records.layouts,
    )


def _pack_constants(lowering: Lowering) -> None:
    packed = pack_constants.pack_constants(
        lowering.schedule, lowering.kernels, sources=lowering.options.weights == "original"
    )
    in_files = lowering.ctx.weight_bytes
    lowering.constants = packed if in_files is None else replace(packed, original_bytes=in_files)


def _record_statistics(lowering: Lowering) -> None:
    records, shared = lowering.ctx.records, lowering.options.dedup != "none"
    costs = lowering.target.description.work_costs
    record_statistics.record_statistics(
        records, lowering.kernels, lowering.schedule, lowering.constants, shared=shared, work_costs=costs
    )
    record_choices.record_choices(records, lowering.kernels, lowering.options.choices, lowering.options.kernels)
    for node, programs in lowering.branches.items():
        branches.record_branches(records, node, programs)
    for loop, programs in lowering.repeats.items():
        repeats.record_repeats(records, loop, programs)
    records.statistics |= lowering.target.counted()


def _assemble_artifact(lowering: Lowering) -> None:
    ctx = lowering.ctx
    metadata = {"model": ctx.records.model, **ctx.metadata}
    if lowering.taken is not None:
        _schedule_taken(lowering, lowering.taken)
    lowering.artifact = lowering.target.assemble(
        lowering.schedule, lowering.kernels, lowering.constants, records=encode(ctx.records), metadata=metadata
    )
    if lowering.fallback is not None:
        lowering.artifact = lowering.artifact.with_fallback(_sharing(lowering.fallback, lowering.artifact))


def _schedule_taken(lowering: Lowering, module: ModuleOp) -> None:
    """What the target made of the program in place of what was counted: its schedule and constants, no kernels."""
    threads = lowering.target.description.threads
    lowering.schedule = build_schedule.build_schedule(lowering.ctx, module, threads=threads)
    lowering.kernels = {}
    lowering.constants = pack_constants.pack_constants(lowering.schedule, {})


def _sharing(program: Any, artifact: Artifact) -> Any:
    """The program, its constants those of `artifact` where they are equal."""
    from fuseline.runtime.artifact import Artifact

    if not isinstance(program, Artifact):
        return program
    return program._replace(constants=fallback.share_constants(artifact.constants, program.constants))


STEPS: Mapping[str, Callable[[Lowering], None]] = {
    "compile-executables": _compile_executables,
    "compile-branches": _compile_branches,
    "compile-fallback": _compile_fallback,
    "build-schedule": _build_schedule,
    "share-constant-layouts": _share_constant_layouts,
    "pack-constants": _pack_constants,
    "record-statistics": _record_statistics,
    "assemble-artifact": _assemble_artifact,
}
