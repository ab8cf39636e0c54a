"""Running the phases of `pipeline.py` on a program: each pass made with the user's options, watched, timed, shown."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fuseline.analysis.idiom_watch import IdiomWatch
from fuseline.border import border
from fuseline.compile_options import CompileOptions
from fuseline.dispatch.loops_kept import loops_kept, says_loops
from fuseline.dispatch.verify_loops import verify_loops
from fuseline.ir.context import CompilerContext
from fuseline.ir.printed_after import START
from fuseline.ir.target_description import TargetDescription
from fuseline.ir.verify_definitions import verify_definitions
from fuseline.passes.options import Step, pass_options
from fuseline.passes.registry import load_pass
from fuseline.pipeline import OF_A_LEVEL, OPTIONAL, PHASES, steps_left
from fuseline.source_program import add_seconds, report_progress
from fuseline.timeline import span


def run_phases(module: ModuleOp, ctx: CompilerContext, options: CompileOptions, *, until: str | None = None) -> None:
    """Run every phase up to and including `until` (default: all) on `module` in place."""
    watch = IdiomWatch(module, ctx) if options.verify_each else None
    kept = options.passes is not None or says_loops(module)
    _observe(options, START, module, ctx)
    for number, (phase, steps) in enumerate(steps_left(module, ctx, options).items()):
        report_progress(options, phase, number, len(PHASES))
        start = time.perf_counter()
        with span("phase", phase):
            for step in steps:
                _run_pass(phase, step, module, ctx, options, watch, kept=kept)
        add_seconds(ctx, phase, start)
        if phase == until:
            return


def run_steps(
    module: ModuleOp, ctx: CompilerContext, options: CompileOptions, steps: Sequence[tuple[str, Step]]
) -> None:
    """Run these passes, each with its phase, on `module` in place."""
    for phase, step in steps:
        _run_pass(phase, step, module, ctx, options, None, kept=options.passes is not None)


def _run_pass(
    phase: str,
    step: Step,
    module: ModuleOp,
    ctx: CompilerContext,
    options: CompileOptions,
    watch: IdiomWatch | None,
    *,
    kept: bool,
) -> None:
    """`kept`: passes may find dispatches that they were not made for, by the user's order or in the text that is
    compiled, so what those say of their loops is watched over."""
    if not _may_run(step.name, ctx):
        return
    with border(f"{phase}/{step.name}"), span("pass", step.name):
        with loops_kept(module, ctx) if kept else nullcontext():
            pass_of(step, options, ctx.target).apply(ctx, module)
        if watch is not None:
            module.verify()
            verify_definitions(module)
            verify_loops(module, ctx)
            watch.check(module)
    _observe(options, f"{phase}/{step.name}", module, ctx)


def _may_run(name: str, ctx: CompilerContext) -> bool:
    """Whether there is fuel for a pass that could be left out; it is spent then."""
    if ctx.fuel is None or name not in OPTIONAL:
        return True
    if not ctx.fuel.left("pass"):
        return False
    ctx.fuel.spend("pass", name)
    return True


def _observe(options: CompileOptions, place: str, module: ModuleOp, ctx: CompilerContext) -> None:
    if options.after_pass is not None:
        options.after_pass(place, module, ctx)


def pass_of(step: Step, options: CompileOptions, target: TargetDescription) -> ModulePass:
    """A pass as a compile with these options runs it."""
    return _with_options(_make_pass(step.name, options, target), step.options)


def _with_options(made: ModulePass, own: Mapping[str, Any]) -> ModulePass:
    return replace(made, **own) if own else made


def _make_pass(name: str, options: CompileOptions, target: TargetDescription) -> ModulePass:
    kind = load_pass(name)
    return kind(**{**_chosen(name, options, target), **pass_options(name, options.pass_options.get(name, {}))})


def _chosen(name: str, options: CompileOptions, target: TargetDescription) -> dict[str, Any]:
    """What the user's choices mean for one pass."""
    if name == "form-dispatch-regions":
        from fuseline.passes.fusion.user_rules import require_rules, user_rules

        require_rules(options.without_rules, [*options.rules, *map(Path, target.rules.files)])
        return {
            "fusion": options.fusion if options.fusion != "default" else None,
            "more_rules": user_rules(options.rules),
            "without": tuple(options.without_rules),
            "plan": str(options.plan or ""),
            "plan_strict": options.plan_strict,
            "code_limits": options.code_limits,
        }
    if name == "clone-reads":
        return {"level": options.fusion}
    if name == "fuse-row-bands":
        level = options.fusion if options.fusion == "aggressive" else "default"
        return {"plan": str(options.plan or ""), "level": level, "code_limits": options.code_limits}
    if name in OF_A_LEVEL:
        return {"level": options.dedup}
    return {}
