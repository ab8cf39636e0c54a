"""The table of contents of a compile: which passes run, in which order. The only place where order is written.

model file ──read──> linalg on tensors ──passes──> executables + dispatches ──codegen──> kernels
                                                                          ──schedule, assemble──> artifact
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fuseline.analysis.idiom_watch import IdiomWatch
from fuseline.border import border
from fuseline.cache.key import model_name
from fuseline.code_listing import code_listing
from fuseline.compile_options import CompileOptions as CompileOptions
from fuseline.dispatch.verify_loops import verify_loops
from fuseline.errors import FuselineError
from fuseline.gc_pause import gc_paused
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.printed_after import PRINTED_WEIGHT_BYTES, START
from fuseline.ir.rounds import rounds
from fuseline.ir.target_description import TargetDescription
from fuseline.ir.text import print_module
from fuseline.lowering import STEPS, Lowering
from fuseline.passes.dispatch.lower_code_limits import MOST_ROUNDS, lowered, too_long
from fuseline.passes.fusion.plan import plan_text
from fuseline.passes.options import Step, parse_steps, pass_options, require_run
from fuseline.passes.registry import load_pass
from fuseline.targets.target import CODE_FORMS

if TYPE_CHECKING:
    from fuseline.frontends.onnx.branches import BranchModel
    from fuseline.runtime.artifact import Artifact
    from fuseline.targets.target import Target

PHASES: dict[str, tuple[str, ...]] = {
    "cleanup": (
        "generalize-named-ops",
        "require-inserts-inside",
        "generalize-tensor-ops",
        "scalars-to-tensors",
        "require-addressable-sizes",
        "require-equal-sizes",
        "require-maps-inside",
        "clamp-unproven-places",
        "require-readable-places",
        "compute-halves-in-f32",
        "canonicalize",
        "cse",
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
        "materialize-fills",
        "clone-reads",
        "form-dispatch-regions",
        "merge-equal-regions",
        "elide-concats",
        "clone-cheap-producers",
        "dead-code",
    ),
    "dispatch": ("outline-executables",),
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

_CLONES = "clone-cheap-producers"

_OF_A_LEVEL = frozenset(PHASES["dedup"]) - {"record-dispatches"}
"""Passes that are told how much dispatches may share."""

PLAN_STAGE = "plan"

STAGES = ("input", *PASS_PHASES, PLAN_STAGE, *CODE_FORMS)
"""What `--emit` accepts: the IR as read, or after a phase; the fusion plan; or the code."""


def read_program(source: Any, ctx: CompilerContext, shapes: Mapping[str, Any] | None = None) -> ModuleOp:
    """The IR of a model: an ONNX file (or ModelProto), or MLIR text in a `.mlir` file. Raises FuselineError naming the
    node or line."""
    if isinstance(source, str | Path) and Path(source).suffix == ".mlir":
        from fuseline.frontends.mlir import read_mlir

        return read_mlir(Path(source), ctx)
    from fuseline.frontends.onnx import read_onnx

    return read_onnx(source, ctx, shapes=shapes)


def run_phases(module: ModuleOp, ctx: CompilerContext, options: CompileOptions, *, until: str | None = None) -> None:
    """Run every phase up to and including `until` (default: all) on `module` in place."""
    watch = IdiomWatch(module, ctx) if options.verify_each else None
    _observe(options, START, module, ctx)
    for number, (phase, steps) in enumerate(_phases_of(options).items()):
        _report(options, phase, number, len(PHASES))
        start = time.perf_counter()
        for step in steps:
            with border(f"{phase}/{step.name}"):
                _with_options(_make_pass(step.name, options, ctx.target), step.options).apply(ctx, module)
                if watch is not None:
                    module.verify()
                    verify_loops(module, ctx)
                    watch.check(module)
            _observe(options, f"{phase}/{step.name}", module, ctx)
        _add_seconds(ctx, phase, start)
        if phase == until:
            return


def _observe(options: CompileOptions, place: str, module: ModuleOp, ctx: CompilerContext) -> None:
    if options.after_pass is not None:
        options.after_pass(place, module, ctx)


def _phases_of(options: CompileOptions) -> dict[str, list[Step]]:
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
    if name in _OF_A_LEVEL:
        return {"level": options.dedup}
    return {}


def _add_seconds(ctx: CompilerContext, phase: str, start: float) -> None:
    seconds = ctx.records.phase_seconds
    seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - start


def _report(options: CompileOptions, phase: str, done: int, total: int) -> None:
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
    set_target(ctx, target)
    ctx.records.model = model_name(source)
    ctx.records.pipeline = pipeline_version(options.passes, options.pass_options)
    ctx.records.target, ctx.records.threads = target.description.name, target.description.threads
    _report(options, "read", 0, len(PHASES))
    start = time.perf_counter()
    with border("read"):
        module = read_program(source, ctx, options.shapes)
    _add_seconds(ctx, "read", start)
    return module, ctx


def emit(source: Any, options: CompileOptions) -> str:
    """The IR after the stage `options.emit` as text, the fusion plan, or the code. Raises E0501 for a stage or a
    dispatch that there is not."""
    from fuseline.targets import create_target

    stage = options.emit
    if stage not in STAGES:
        raise FuselineError("E0501", f"no stage is called {stage!r}", hint=f"use one of {', '.join(STAGES)}")
    if stage in CODE_FORMS:
        return _emit_code(source, options, stage)
    if options.emit_dispatch is not None:
        hint = f"emit one of {', '.join(CODE_FORMS)}"
        raise FuselineError("E0501", f"the stage {stage!r} is no code of a dispatch", hint=hint)
    module, ctx = prepare(source, options, create_target(options.target, options.threads, options.numerics))
    last = "fusion" if stage == PLAN_STAGE else stage
    if stage != "input" and last not in _phases_of(options):
        known = ", ".join(("input", *_phases_of(options), PLAN_STAGE))
        raise FuselineError("E0501", f"with passes of your own there is no stage {stage!r}", hint=f"use one of {known}")
    if stage != "input":
        run_phases(module, ctx, options, until=last)
    return (
        plan_text(ctx.records) if stage == PLAN_STAGE else print_module(module, ctx, embed_limit=PRINTED_WEIGHT_BYTES)
    )


def _emit_code(source: Any, options: CompileOptions, form: str) -> str:
    """The code of the program in a form of `CODE_FORMS`, as a compile makes it."""
    from fuseline.targets import create_target

    target = create_target(options.target, options.threads, options.numerics)
    target.keep_code()
    lowering = _within_code_limits(source, options, target)
    _run_steps(lowering, "schedule")
    STEPS["record-statistics"](lowering)
    return code_listing(lowering.ctx.records, target, form, options.emit_dispatch)


def outlined(source: Any, options: CompileOptions) -> tuple[ModuleOp, CompilerContext]:
    """The program with each dispatch in an executable of its own, before any are shared."""
    from fuseline.targets import create_target

    module, ctx = prepare(source, options, create_target(options.target, options.threads, options.numerics))
    run_phases(module, ctx, options, until="dispatch")
    return module, ctx


def compile_program(source: Any, options: CompileOptions) -> Artifact:
    """Compile a model for `options.target`. Raises FuselineError naming the node, feed or option at fault; nothing is
    written."""
    from fuseline.targets import create_target

    target = create_target(options.target, options.threads, options.numerics)
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
        lowering = _with_code(module, ctx, smaller, target, splits=attempt < most)
        long = too_long(ctx.records.dispatches, lowering.kernels)
        if not long:
            return lowering
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
    lowering = Lowering(module, ctx, options, target, _compile_branch, splits)
    _run_steps(lowering, "codegen")
    return lowering


def _assembled(lowering: Lowering) -> Artifact:
    """Schedule and artifact for dispatches whose code is there."""
    _run_steps(lowering, "schedule")
    _run_steps(lowering, "assemble")
    return lowering.artifact


def _run_steps(lowering: Lowering, phase: str) -> None:
    _report(lowering.options, phase, list(PHASES).index(phase), len(PHASES))
    start = time.perf_counter()
    for name in PHASES[phase]:
        with border(f"{phase}/{name}"):
            STEPS[name](lowering)
    _add_seconds(lowering.ctx, phase, start)


def _compile_fallback(source: Any, options: CompileOptions) -> Artifact:
    """The program of a model whose sizes broadcast as they are. Raises FuselineError where there is none."""
    from fuseline.targets import create_target

    target = create_target(options.target, options.threads, options.numerics)
    return _compile(source, replace(options, plan=None, progress=None), target, literal_broadcasts=True)


def _compile_branch(branch: BranchModel, options: CompileOptions) -> Artifact | FuselineError:
    """The program of a branch, or why no run can take it: what reading it finds wrong. Raises what else goes wrong."""
    from fuseline.targets import create_target

    target = create_target(options.target, options.threads, options.numerics)
    try:
        read = prepare(branch.proto, options, target)
    except FuselineError as error:
        return error
    return _compile(branch.proto, options, target, read)
