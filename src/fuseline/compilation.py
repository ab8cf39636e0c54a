"""A compile from the model to the artifact, or to the text of a stage: the phases of `pipeline.py`, once more with
smaller dispatches where one's code came out too long, and for the programs beside the program."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from fuseline.border import border
from fuseline.code_listing import code_listing
from fuseline.compile_options import CompileOptions
from fuseline.emitted_stage import DECIDED, OUTLINED, stage_text, write_stage
from fuseline.errors import FuselineError
from fuseline.gc_pause import gc_paused
from fuseline.ir.context import CompilerContext
from fuseline.ir.printed_after import PRINTED_WEIGHT_BYTES
from fuseline.ir.rounds import rounds
from fuseline.ir.stage_file import StageFile
from fuseline.lowering import STEPS, Lowering
from fuseline.passes.dispatch.lower_code_limits import MOST_ROUNDS, lowered, too_long
from fuseline.passes.fusion.plan import plan_text
from fuseline.phase_runner import run_phases
from fuseline.pipeline import FLOW_STAGE, PHASES, PLAN_STAGE, STAGES, phases_of, pipeline_version
from fuseline.runtime.files import write_bytes
from fuseline.source_program import add_seconds, prepare, report_progress
from fuseline.targets.compiled_kernel import CODE_FORMS
from fuseline.timeline import span

if TYPE_CHECKING:
    from fuseline.frontends.onnx.branches import BranchModel
    from fuseline.runtime.artifact import Artifact
    from fuseline.targets.iree.flow import FlowProgram
    from fuseline.targets.target import Target


def emit(
    source: Any, options: CompileOptions, output: Path | None = None, notice: Callable[[int, int], object] | None = None
) -> str:
    """The IR after the stage `options.emit` as text, the fusion plan, or the code; written to `output`, where that is
    given: IR is complete then, its weights beside it. Else `notice` is told how many weights the text has only the
    names of, and their bytes.

    Raises FuselineError: E0501 for a stage or a dispatch that there is not, E0502 for a place that cannot be written.
    """
    stage = options.emit
    if stage not in STAGES:
        raise FuselineError("E0501", f"no stage is called {stage!r}", hint=f"use one of {', '.join(STAGES)}")
    if stage in CODE_FORMS:
        return _written(_emit_code(source, options, stage), output)
    if options.emit_dispatch is not None:
        hint = f"emit one of {', '.join(CODE_FORMS)}"
        raise FuselineError("E0501", f"the stage {stage!r} is no code of a dispatch", hint=hint)
    if stage == FLOW_STAGE:
        return emit_flow(source, options).text
    last = "fusion" if stage == PLAN_STAGE else stage
    if stage != "input" and last not in phases_of(options):
        known = ", ".join(("input", *phases_of(options), PLAN_STAGE))
        raise FuselineError("E0501", f"with passes of your own there is no stage {stage!r}", hint=f"use one of {known}")
    if output is not None and stage in DECIDED:
        options = _with_limits(options, _code_limits(source, options, target_of(options)))
    module, ctx = prepare(source, options, target_of(options))
    if stage != "input":
        run_phases(module, ctx, options, until=last)
    if stage == PLAN_STAGE:
        return _written(plan_text(ctx.records), output)
    if output is None:
        return stage_text(StageFile(module, ctx, Path(), None, locations=False), PRINTED_WEIGHT_BYTES, notice)
    return write_stage(module, ctx, output, stage, pipeline_version(), _literal(source, ctx, options, stage))


def _literal(
    source: Any, ctx: CompilerContext, options: CompileOptions, stage: str
) -> tuple[ModuleOp, CompilerContext] | None:
    """The program after a stage of a model whose sizes broadcast as they are, where some are taken to be equal; None
    where it cannot be made, as in a compile."""
    if not ctx.taken_equal:
        return None
    alone = replace(options, plan=None, progress=None, after_pass=None)
    try:
        target = target_of(options)
        module, other = prepare(source, alone, target, literal_broadcasts=True)
        if stage != "input":
            run_phases(module, other, alone, until=stage)
    except FuselineError as error:
        if error.code == "E0901":
            raise
        return None
    return module, other


def _written(text: str, output: Path | None) -> str:
    if output is not None:
        write_bytes(output, (text if text.endswith("\n") else f"{text}\n").encode())
    return text


def emit_flow(source: Any, options: CompileOptions) -> FlowProgram:
    """The dispatches as regions of IREE's dialect, and what is in the archive of weights beside the text; for the
    target `iree`, what its compiler is given first. Raises E0306 for what IREE has no word for."""
    from fuseline.targets.iree.flow import flow_program
    from fuseline.targets.iree.launched import launched, loose_executables

    module, ctx = outlined(source, options)
    if options.target.partition(":")[0] != "iree":
        return flow_program(module, ctx)
    return flow_program(module, ctx, loose_executables(launched(module)), lanes=True)


def _emit_code(source: Any, options: CompileOptions, form: str) -> str:
    """The code of the program in a form of `CODE_FORMS`, as a compile makes it."""
    target = target_of(options)
    target.keep_code()
    lowering = _within_code_limits(source, options, target)
    _run_steps(lowering, "schedule")
    STEPS["record-statistics"](lowering)
    return code_listing(lowering.ctx.records, target, form, options.emit_dispatch)


def outlined(source: Any, options: CompileOptions) -> tuple[ModuleOp, CompilerContext]:
    """The program with each dispatch in an executable of its own, before any are shared."""
    module, ctx = prepare(source, options, target_of(options))
    run_phases(module, ctx, options, until="dispatch")
    return module, ctx


def target_of(options: CompileOptions) -> Target:
    """The target that options name, which asks kernels for what they choose (`CompileOptions.choices`)."""
    from fuseline.targets import create_target

    target = create_target(options.target, options.threads, options.numerics)
    target.follow(options.choices)
    if options.observer is not None:
        options.observer.target_made(target)
    return target


def compile_program(source: Any, options: CompileOptions) -> Artifact:
    """Compile a model for `options.target`. Raises FuselineError naming the node, feed or option at fault; nothing is
    written."""
    target = target_of(options)
    with gc_paused():
        return _compile(source, options, target)


def _compile(
    source: Any,
    options: CompileOptions,
    target: Target,
    read: tuple[ModuleOp, CompilerContext] | None = None,
    *,
    literal_broadcasts: bool = False,
) -> Artifact:
    """All phases, code and schedule; see `_within_code_limits`."""
    lowering = _within_code_limits(source, options, target, read, literal_broadcasts=literal_broadcasts)
    if not literal_broadcasts:
        lowering.compile_fallback = partial(_compile_fallback, source, options)
    return _assembled(lowering)


def _within_code_limits(
    source: Any,
    options: CompileOptions,
    target: Target,
    read: tuple[ModuleOp, CompilerContext] | None = None,
    *,
    literal_broadcasts: bool = False,
) -> Lowering:
    """All phases and the code; from the start with smaller dispatches where the target says that one's code came out
    too long.

    `read`: the program of `source` where it has been read. `literal_broadcasts`: see `CompilerContext`.
    """
    return _in_rounds(source, options, target, read, literal_broadcasts)[0]


def _code_limits(source: Any, options: CompileOptions, target: Target) -> Mapping[str, int]:
    """The limits of code with which a compile forms its dispatches: what is written of them is what is compiled."""
    if options.plan or options.fusion == "none" or not target.makes_artifacts:
        return {}
    with gc_paused():
        return _in_rounds(source, replace(options, progress=None, after_pass=None), target, None, False)[1]


def _in_rounds(
    source: Any,
    options: CompileOptions,
    target: Target,
    read: tuple[ModuleOp, CompilerContext] | None,
    literal_broadcasts: bool,
) -> tuple[Lowering, Mapping[str, int]]:
    """The program with its code, and the limits of the last round."""
    limits: dict[str, int] = {}
    most = 0 if options.plan or options.fusion == "none" else MOST_ROUNDS
    for attempt in rounds("splitting what is too long", most=most + 1):
        smaller = _with_limits(options, limits)
        module, ctx = (
            read
            if read is not None and not limits
            else prepare(source, smaller, target, literal_broadcasts=literal_broadcasts)
        )
        run_phases(module, ctx, smaller)
        outlined_before = ctx.emitted is not None and ctx.emitted.stage in OUTLINED
        lowering = _with_code(module, ctx, smaller, target, splits=attempt < most and not outlined_before)
        long = too_long(ctx.records.dispatches, lowering.kernels)
        if not long:
            return lowering, limits
        limits = lowered(limits, long, target.description.code_limit)
    raise AssertionError("the last round splits nothing")


def _with_limits(options: CompileOptions, limits: Mapping[str, int]) -> CompileOptions:
    """The options where dispatches that hold the nodes in `limits` may be no longer than those say."""
    return replace(options, code_limits=limits) if limits else options


def lower(module: ModuleOp, ctx: CompilerContext, options: CompileOptions, target: Target) -> Artifact:
    """Code, schedule and artifact for a module whose dispatches are outlined."""
    return _assembled(_with_code(module, ctx, options, target, splits=False))


def _with_code(
    module: ModuleOp, ctx: CompilerContext, options: CompileOptions, target: Target, *, splits: bool
) -> Lowering:
    """The program with the kernel of each executable; `splits`: see `Target.compile_executables`."""
    lowering = Lowering(module, ctx, options, target, _compile_branch, _compile_apart, splits)
    _run_steps(lowering, "codegen")
    return lowering


def _assembled(lowering: Lowering) -> Artifact:
    """Schedule and artifact for dispatches whose code is there."""
    _run_steps(lowering, "schedule")
    _run_steps(lowering, "assemble")
    if lowering.options.observer is not None:
        lowering.options.observer.lowered(lowering)
    return lowering.artifact


def _run_steps(lowering: Lowering, phase: str) -> None:
    report_progress(lowering.options, phase, list(PHASES).index(phase), len(PHASES))
    start = time.perf_counter()
    with span("phase", phase):
        for name in PHASES[phase]:
            with border(f"{phase}/{name}"), span("pass", name):
                STEPS[name](lowering)
    add_seconds(lowering.ctx, phase, start)


def _compile_fallback(source: Any, options: CompileOptions) -> Artifact:
    """The program of a model whose sizes broadcast as they are. Raises FuselineError where there is none."""
    target = target_of(options)
    return _compile(source, replace(options, plan=None, progress=None), target, literal_broadcasts=True)


def _compile_apart(source: Any, options: CompileOptions) -> Artifact:
    """A program of its own, which a loop of the host repeats."""
    from fuseline.targets import create_target

    return _compile(source, options, create_target(options.target, options.threads, options.numerics))


def _compile_branch(branch: BranchModel, options: CompileOptions) -> Artifact | FuselineError:
    """The program of a branch, or why no run can take it: what reading it finds wrong. Raises what else goes wrong."""
    target = target_of(options)
    try:
        read = prepare(branch.proto, options, target)
    except FuselineError as error:
        return error
    return _compile(branch.proto, options, target, read)
