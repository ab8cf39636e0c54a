"""The table of contents of a compile: which passes run, in which order. The only place where order is written.

model file ──read──> linalg on tensors ──passes──> executables + dispatches ──codegen──> kernels
                                                                          ──schedule, assemble──> artifact
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fuseline.analysis.idiom_watch import IdiomWatch
from fuseline.border import border
from fuseline.cache.key import model_name
from fuseline.compile_options import CompileOptions as CompileOptions
from fuseline.dispatch.verify_loops import verify_loops
from fuseline.emitted_stage import stage_behind
from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.printed_after import START
from fuseline.ir.repeat import MlirText
from fuseline.ir.target_description import TargetDescription
from fuseline.lowering import STEPS
from fuseline.passes.options import Step, parse_steps, pass_options, require_run
from fuseline.passes.registry import load_pass
from fuseline.targets.compiled_kernel import CODE_FORMS
from fuseline.timeline import span

if TYPE_CHECKING:
    from fuseline.targets.target import Target

PHASES: dict[str, tuple[str, ...]] = {
    "cleanup": (
        "generalize-named-ops",
        "require-inserts-inside",
        "generalize-tensor-ops",
        "scalars-to-tensors",
        "require-addressable-sizes",
        "require-equal-sizes",
        "unify-equal-sizes",
        "require-maps-inside",
        "clamp-unproven-positions",
        "require-readable-positions",
        "compute-halves-in-f32",
        "canonicalize",
        "cse",
        "read-halves-in-windows",
        "multiply-in-integers",
        "fold-constants",
        "dead-code",
    ),
    "layout": (
        "convert-convolutions-to-channels-last",
        "fold-unit-dims",
        "sink-collapse-shapes",
        "propagate-transposes",
        "fold-constants",
        "bubble-expand-shapes",
        "sink-collapse-shapes",
        "sink-expand-shapes",
        "sink-collapse-shapes",
        "collapse-dims",
        "refine-dims",
        "fold-broadcasts-into-readers",
        "propagate-transposes",
        "fold-unit-dims",
        "sink-concats",
        "canonicalize",
        "cse",
        "fold-constants",
        "fold-scale-into-weights",
        "dead-code",
    ),
    "padding": (
        "pad-to-tile",
        "fold-pad-into-consumer",
        "fold-pad-into-producer",
        "canonicalize",
        "dead-code",
    ),
    "fusion": (
        "compute-sizes-on-host",
        "materialize-fills",
        "clone-reads",
        "form-dispatch-regions",
        "merge-equal-regions",
        "elide-fills",
        "elide-concats",
        "narrow-results",
        "fuse-row-bands",
        "clone-cheap-producers",
        "dead-code",
    ),
    "dispatch": (
        "outline-executables",
        "fuse-elementwise-bodies",
    ),
    "dedup": (
        "deduplicate-executables",
        "canonicalize-executables",
        "compare-executables",
        "constants-to-operands",
        "deduplicate-executables",
        "record-dispatches",
    ),
    "codegen": ("compile-executables",),
    "schedule": (
        "compile-branches",
        "compile-fallback",
        "build-schedule",
        "share-constant-layouts",
        "pack-constants",
    ),
    "assemble": (
        "record-statistics",
        "assemble-artifact",
    ),
}
"""Phases in order. Up to `dedup` each is a list of pass names, and a pass may stand in several places: all of them may
run again. From `codegen` on they are the steps of `lowering.py`, which leave the IR as it is."""

PASS_PHASES = {phase: names for phase, names in PHASES.items() if not set(names) <= STEPS.keys()}

_NEEDED = PHASES["cleanup"][: PHASES["cleanup"].index("canonicalize")]
"""What makes any program safe to run, so that passes of the user cannot leave it out."""

_RECORDS = "record-dispatches"

_CHECKS = [name for name in _NEEDED if name.startswith("require-") or name == "clamp-unproven-positions"]
"""What keeps reads and writes inside of tensors."""

_CLONES = "clone-cheap-producers"

_OF_A_LEVEL = frozenset(PHASES["dedup"]) - {_RECORDS}
"""Passes that are told how much dispatches may share."""

OPTIONAL = frozenset(
    (
        *PHASES["cleanup"][PHASES["cleanup"].index("canonicalize") :],
        *PHASES["layout"],
        *PHASES["padding"],
        *PHASES["fusion"],
        *PHASES["dispatch"],
        *PHASES["dedup"],
    )
) - {"compute-sizes-on-host", "form-dispatch-regions", _CLONES, "outline-executables", _RECORDS}
"""What a program is right without, if larger and slower: the passes that fuel is for."""

PLAN_STAGE = "plan"

FLOW_STAGE = "flow"

STAGES = ("input", *PASS_PHASES, PLAN_STAGE, FLOW_STAGE, *CODE_FORMS)
"""What `--emit` accepts: the IR as read, or after a phase; the fusion plan; the dispatches for IREE; or the code."""


def read_program(source: Any, ctx: CompilerContext, shapes: Mapping[str, Any] | None = None) -> ModuleOp:
    """The IR of a model: an ONNX file (or ModelProto), MLIR text in a `.mlir` file or at hand. Raises FuselineError
    naming the node or line."""
    if isinstance(source, MlirText):
        from fuseline.frontends.mlir import read_text

        return read_text(source, ctx)
    if isinstance(source, str | Path) and Path(source).suffix == ".mlir":
        from fuseline.frontends.mlir import read_mlir

        if shapes:
            hint = "write the sizes into the types of its arguments, or give --shape where the text is emitted"
            raise FuselineError("E0501", f"--shape {next(iter(shapes))}: an MLIR text says its sizes", hint=hint)
        return read_mlir(Path(source), ctx)
    from fuseline.frontends.onnx import read_onnx

    return read_onnx(source, ctx, shapes=shapes)


def run_phases(module: ModuleOp, ctx: CompilerContext, options: CompileOptions, *, until: str | None = None) -> None:
    """Run every phase up to and including `until` (default: all) on `module` in place."""
    watch = IdiomWatch(module, ctx) if options.verify_each else None
    _observe(options, START, module, ctx)
    for number, (phase, steps) in enumerate(_steps_left(module, ctx, options).items()):
        report_progress(options, phase, number, len(PHASES))
        start = time.perf_counter()
        with span("phase", phase):
            for step in steps:
                _run_pass(phase, step, module, ctx, options, watch)
        add_seconds(ctx, phase, start)
        if phase == until:
            return


def run_steps(
    module: ModuleOp, ctx: CompilerContext, options: CompileOptions, steps: Sequence[tuple[str, Step]]
) -> None:
    """Run these passes, each with its phase, on `module` in place."""
    for phase, step in steps:
        _run_pass(phase, step, module, ctx, options, None)


def _run_pass(
    phase: str, step: Step, module: ModuleOp, ctx: CompilerContext, options: CompileOptions, watch: IdiomWatch | None
) -> None:
    if not _may_run(step.name, ctx):
        return
    with border(f"{phase}/{step.name}"), span("pass", step.name):
        pass_of(step, options, ctx.target).apply(ctx, module)
        if watch is not None:
            module.verify()
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


def _steps_left(module: ModuleOp, ctx: CompilerContext, options: CompileOptions) -> dict[str, list[Step]]:
    """The passes of each phase without those that a program has behind it and keeps; what makes it safe is asked of
    every text."""
    phases = phases_of(options)
    behind = stage_behind(module, ctx, options, pipeline_version(), PASS_PHASES)
    done = list(phases)[: list(phases).index(behind) + 1] if behind else []
    if behind == "dedup" and options.dedup != ctx.records.dedup:
        done.remove(behind)
    always = {_RECORDS, *_CHECKS}
    return {
        phase: [step for step in steps if phase not in done or step.name in always] for phase, steps in phases.items()
    }


def _observe(options: CompileOptions, place: str, module: ModuleOp, ctx: CompilerContext) -> None:
    if options.after_pass is not None:
        options.after_pass(place, module, ctx)


def phases_of(options: CompileOptions) -> dict[str, list[Step]]:
    """The passes of each phase, with options of their own. Those of the user, where there are some, are the phase
    `fusion`, before them comes only what they leave out of `_NEEDED`, and behind
    them what outlining relies on.

    Raises E0303 or E0304 for a pass or an option that there is not.
    """
    phases = {phase: [Step(name) for name in names] for phase, names in PASS_PHASES.items()}
    if options.passes is not None:
        rest = list(PASS_PHASES)[list(PASS_PHASES).index("dispatch") :]
        own = parse_steps(options.passes, PASS_PHASES)
        first = [Step(name) for name in _NEEDED if name not in [step.name for step in own]]
        last = [Step(_CLONES)] if _CLONES not in [step.name for step in own] else []
        phases = {"fusion": [*first, *own, *last], **{phase: phases[phase] for phase in rest}}
    require_run(options.pass_options, [step.name for steps in phases.values() for step in steps])
    return phases


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
            "fusion": options.fusion,
            "more_rules": user_rules(options.rules),
            "without": tuple(options.without_rules),
            "plan": str(options.plan or ""),
            "plan_strict": options.plan_strict,
            "code_limits": options.code_limits,
        }
    if name == "fuse-row-bands":
        return {"plan": str(options.plan or ""), "code_limits": options.code_limits}
    if name in _OF_A_LEVEL:
        return {"level": options.dedup}
    return {}


def add_seconds(ctx: CompilerContext, phase: str, start: float) -> None:
    """Count the time since `start` (`time.perf_counter`, seconds) as the phase's, in the records."""
    seconds = ctx.records.phase_seconds
    seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - start


def report_progress(options: CompileOptions, phase: str, done: int, total: int) -> None:
    """Tell whoever wants to know that `phase` begins, with `done` of `total` phases behind it."""
    if options.progress is not None:
        options.progress(phase, done, total)


def pipeline_version(passes: str | None = None, options: Mapping[str, Mapping[str, Any]] | None = None) -> str:
    """Identifies the passes, their order and their options; a plan made for another version may not match."""
    own = repr((passes, options)) if passes is not None or options else ""
    return hashlib.blake2b((repr(PHASES) + own).encode(), digest_size=4).hexdigest()


def set_target(ctx: CompilerContext, target: Target) -> None:
    """Tell passes which machine they work for."""
    ctx.target, ctx.legal, ctx.takes_op = target.description, target.legal, target.takes_op
    ctx.sharing_price = target.sharing_price


def prepare(
    source: Any, options: CompileOptions, target: Target, *, literal_broadcasts: bool = False
) -> tuple[ModuleOp, CompilerContext]:
    """The program as read, and its context (`literal_broadcasts`: see there)."""
    ctx = new_context()
    ctx.literal_broadcasts = literal_broadcasts
    ctx.fuel = target.fuel = options.fuel
    set_target(ctx, target)
    ctx.records.model = model_name(source)
    ctx.records.warnings += options.plan_remarks
    ctx.records.pipeline = pipeline_version(options.passes, options.pass_options)
    ctx.records.target, ctx.records.threads = target.description.name, target.description.threads
    report_progress(options, "read", 0, len(PHASES))
    start = time.perf_counter()
    with border("read"), span("phase", "read"):
        module = read_program(source, ctx, options.shapes)
    add_seconds(ctx, "read", start)
    return module, ctx
