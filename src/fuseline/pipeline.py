"""The table of contents of a compile: which passes run, in which order. The only place where order is written.

model file ──read──> linalg on tensors ──PHASES──> executables + dispatches ──target──> kernels ──schedule──> artifact
"""

from __future__ import annotations

import base64
import gc
import hashlib
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.passes import ModulePass

from fuseline.border import border
from fuseline.compile_options import CompileOptions as CompileOptions
from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.flow import ExecutableOp
from fuseline.ir.provenance import provenance
from fuseline.ir.rounds import rounds
from fuseline.ir.text import print_module
from fuseline.passes.dispatch.lower_code_limits import MOST_ROUNDS, lowered, too_long
from fuseline.passes.dispatch.outline_executables import entry_of
from fuseline.passes.fusion.plan import plan_text
from fuseline.passes.registry import load_pass
from fuseline.passes.schedule.build_schedule import build_schedule
from fuseline.passes.schedule.pack_constants import pack_constants
from fuseline.passes.schedule.record_statistics import record_statistics
from fuseline.report.records import CompileRecord, decode, encode

if TYPE_CHECKING:
    from fuseline.frontends.onnx.branches import BranchModel
    from fuseline.runtime.artifact import Artifact
    from fuseline.runtime.branches import Branch
    from fuseline.targets.target import CompiledKernel, Target

PHASES: dict[str, tuple[str, ...]] = {
    "cleanup": (
        "generalize-named-ops",
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
        "place-concats",
        "clone-cheap-producers",
        "dead-code",
    ),
    "dispatch": ("outline-executables",),
    "dedup": (
        "deduplicate-executables",
        "record-dispatches",
    ),
}
"""Phases in order, each a list of pass names. A pass may stand in several places: all of them may run again."""

PLAN_STAGE = "plan"

STAGES = ("input", *PHASES, PLAN_STAGE)
"""What `--emit` accepts: the IR as read, or after a phase; or the fusion plan."""

PRINTED_WEIGHT_BYTES = 256
"""Weights up to this size are printed with the IR of a stage; a larger one is a name."""


def read_program(source: Any, ctx: CompilerContext, shapes: Mapping[str, Any] | None = None) -> ModuleOp:
    """The IR of a model: an ONNX file (or ModelProto), or MLIR text in a `.mlir` file. Raises FuselineError naming the node or line."""
    if isinstance(source, str | Path) and Path(source).suffix == ".mlir":
        from fuseline.frontends.mlir import read_mlir

        return read_mlir(Path(source), ctx)
    from fuseline.frontends.onnx import read_onnx

    return read_onnx(source, ctx, shapes=shapes)


def run_phases(module: ModuleOp, ctx: CompilerContext, options: CompileOptions, *, until: str | None = None) -> None:
    """Run every phase up to and including `until` (default: all) on `module` in place."""
    for number, (phase, names) in enumerate(PHASES.items()):
        _report(options, phase, number, len(PHASES))
        start = time.perf_counter()
        for name in names:
            with border(f"{phase}/{name}"):
                _make_pass(name, options).apply(ctx, module)
                if options.verify_each:
                    module.verify()
        _add_seconds(ctx, phase, start)
        if phase == until:
            return


def _make_pass(name: str, options: CompileOptions) -> ModulePass:
    kind = load_pass(name)
    return kind(**{**_chosen(name, options), **options.pass_options.get(name, {})})


def _chosen(name: str, options: CompileOptions) -> dict[str, Any]:
    """What the user's choices mean for one pass."""
    if name == "form-dispatch-regions":
        from fuseline.passes.fusion.user_rules import user_rules

        return {"fusion": options.fusion, "rules": user_rules(options.rules), "plan": str(options.plan or ""), "plan_strict": options.plan_strict}
    if name == "deduplicate-executables":
        return {"level": options.dedup}
    return {}


def _add_seconds(ctx: CompilerContext, phase: str, start: float) -> None:
    seconds = ctx.records.phase_seconds
    seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - start


def _report(options: CompileOptions, phase: str, done: int, total: int) -> None:
    if options.progress is not None:
        options.progress(phase, done, total)


def pipeline_version() -> str:
    """Identifies the passes and their order; a plan made for another version may not match."""
    return hashlib.blake2b(repr(PHASES).encode(), digest_size=4).hexdigest()


def prepare(source: Any, options: CompileOptions, target: Target) -> tuple[ModuleOp, CompilerContext]:
    """The program as read, and its context."""
    ctx = new_context()
    ctx.target = target.description
    ctx.records.model = str(source) if isinstance(source, str | Path) else type(source).__name__
    ctx.records.pipeline = pipeline_version()
    ctx.records.target, ctx.records.threads = target.description.name, target.description.threads
    _report(options, "read", 0, len(PHASES))
    start = time.perf_counter()
    with border("read"):
        module = read_program(source, ctx, options.shapes)
    _add_seconds(ctx, "read", start)
    return module, ctx


def emit(source: Any, options: CompileOptions) -> str:
    """The IR after the stage `options.emit` as text, or the fusion plan."""
    from fuseline.targets import create_target

    stage = options.emit
    if stage not in STAGES:
        raise FuselineError("E0501", f"no stage is called {stage!r}", hint=f"use one of {', '.join(STAGES)}")
    module, ctx = prepare(source, options, create_target(options.target, options.threads, options.numerics))
    if stage != "input":
        run_phases(module, ctx, options, until="fusion" if stage == PLAN_STAGE else stage)
    return plan_text(ctx.records) if stage == PLAN_STAGE else print_module(module, ctx, embed_limit=PRINTED_WEIGHT_BYTES)


def compile_program(source: Any, options: CompileOptions) -> Artifact:
    """Compile a model for `options.target`. Raises FuselineError naming the node, feed or option at fault; nothing is written."""
    from fuseline.targets import create_target

    target = create_target(options.target, options.threads, options.numerics)
    with _without_collection():
        return _compile(source, options, target)


def _compile(source: Any, options: CompileOptions, target: Target, read: tuple[ModuleOp, CompilerContext] | None = None) -> Artifact:
    """All phases, code and schedule; from the start with smaller dispatches where the target says that one's code came out too long.

    `read`: the program of `source` where it has been read.
    """
    limits: dict[str, int] = {}
    most = 0 if options.plan or options.fusion == "none" else MOST_ROUNDS
    for attempt in rounds("splitting what is too long", most=most + 1):
        smaller = _with_limits(options, limits)
        module, ctx = read if read is not None and not limits else prepare(source, smaller, target)
        run_phases(module, ctx, smaller)
        kernels = _code(module, ctx, smaller, target, splits=attempt < most)
        long = too_long(ctx.records.dispatches, kernels)
        if not long:
            return _assembled(module, ctx, options, target, kernels)
        limits = lowered(limits, long, target.description.code_limit)
    raise AssertionError("the last round splits nothing")


def _with_limits(options: CompileOptions, limits: Mapping[str, int]) -> CompileOptions:
    """The options where dispatches that hold the nodes in `limits` may be no longer than those say."""
    former = "form-dispatch-regions"
    more = {former: {**options.pass_options.get(former, {}), "code_limits": limits}}
    return replace(options, pass_options={**options.pass_options, **more}) if limits else options


@contextmanager
def _without_collection() -> Generator[None]:
    """The garbage collector off: the IR is one large live graph of cycles, and walking it again and again took a tenth of a compile."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            _count_as_old()
            gc.enable()


def _count_as_old() -> None:
    """Move what the compile has made to the oldest generation: the next small collection would walk all of it (0.2 s for 7,000 ops)."""
    if gc.get_freeze_count() == 0:  # nobody has frozen anything that would thaw with it
        gc.freeze()
        gc.unfreeze()


def _compile_branches(module: ModuleOp, ctx: CompilerContext, options: CompileOptions) -> dict[str, list[Artifact]]:
    """Compile both branches of each `If` that is left to the host, and answer them by source node; one with a branch that cannot be compiled
    stays as it is."""
    found: dict[str, list[Artifact]] = {}
    calls = [op for op in module.walk() if isinstance(op, CallOp)] if ctx.records.host_ops else []
    declared = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    for call in calls:
        function = declared.get(call.callee.string_value())
        if function is not None and function.attributes.get("fuseline.host_op") == StringAttr("If"):
            with _left_to_the_host():
                programs = _install_branches(function, replace(options, shapes=None, plan=None, progress=None))
                found |= {node: programs for node in provenance(call) if programs}
    return found


@contextmanager
def _left_to_the_host() -> Generator[None]:
    """A refusal inside leaves the operator to the host; a failure of our own (E0901) is none and is raised."""
    try:
        yield
    except FuselineError as error:
        if error.code == "E0901":
            raise


def _install_branches(function: FuncOp, options: CompileOptions) -> list[Artifact]:
    """Make the declared host operator one that runs either of two programs; answers them (none where it is no such operator)."""
    from fuseline.frontends.onnx.branches import branches_of
    from fuseline.runtime.branches import EXECUTOR, Branch, pack_branches

    node = function.attributes.get("fuseline.onnx_node")
    found = branches_of(base64.b64decode(node.data)) if isinstance(node, StringAttr) else None
    if found is None:
        return []
    then, otherwise = (_compile_branch(branch, options) for branch in (found.then, found.otherwise))
    programs = [branch.artifact for branch in (then, otherwise) if isinstance(branch, Branch)]
    if programs:
        function.attributes["fuseline.onnx_node"] = StringAttr(base64.b64encode(pack_branches(found.condition, then, otherwise)).decode())
        function.attributes["fuseline.executor"] = StringAttr(EXECUTOR)
    return programs


def _compile_branch(branch: BranchModel, options: CompileOptions) -> Branch | FuselineError:
    """The program of a branch, or why no run can take it: what reading it finds wrong. Raises what else goes wrong."""
    from fuseline.runtime.branches import Branch
    from fuseline.targets import create_target

    target = create_target(options.target, options.threads, options.numerics)
    try:
        read = prepare(branch.proto, options, target)
    except FuselineError as error:
        return error
    return Branch(_compile(branch.proto, options, target, read), branch.operands)


def _record_branches(record: CompileRecord, node: str, programs: Sequence[Artifact]) -> None:
    """What was noted of the operators inside `node` gives way to what compiling them found."""
    inner = [decode(program.records) for program in programs]
    record.host_ops = [host for host in record.host_ops if host.node != node or host.reason != "inside If"]
    record.host_ops += [host for branch in inner for host in branch.host_ops]
    record.statistics["host_ops"] = len(record.host_ops)
    counts = " and ".join(str(len(branch.dispatches)) for branch in inner)
    one = "; no run can take the other one" if len(inner) == 1 else ""
    record.notes.append(f"{node}: the branches are programs of {counts} dispatches; the host only chooses between them{one}")


def lower(module: ModuleOp, ctx: CompilerContext, options: CompileOptions, target: Target) -> Artifact:
    """Code, schedule and artifact for a module whose dispatches are outlined."""
    return _assembled(module, ctx, options, target, _code(module, ctx, options, target, splits=False))


def _code(module: ModuleOp, ctx: CompilerContext, options: CompileOptions, target: Target, *, splits: bool) -> dict[str, CompiledKernel]:
    """The kernel of each executable, by its name; `splits`: see `Target.compile_executables`."""
    executables = [op for op in module.ops if isinstance(op, ExecutableOp)]
    _report(options, "codegen", len(PHASES), len(PHASES))
    start = time.perf_counter()
    with border("codegen"):
        compiled = target.compile_executables([entry_of(op) for op in executables], ctx.resources, splits=splits)
    _add_seconds(ctx, "codegen", start)
    return {op.sym_name.data: kernel for op, kernel in zip(executables, compiled, strict=True)}


def _assembled(module: ModuleOp, ctx: CompilerContext, options: CompileOptions, target: Target, kernels: Mapping[str, CompiledKernel]) -> Artifact:
    """Schedule and artifact for dispatches whose code is there."""
    _report(options, "schedule", len(PHASES), len(PHASES))
    start = time.perf_counter()
    with border("schedule"):
        branches = _compile_branches(module, ctx, options) if target.makes_artifacts else {}
        schedule = build_schedule(ctx, module, poison=options.poison)
        constants = pack_constants(schedule, kernels)
        _add_seconds(ctx, "schedule", start)
        record_statistics(ctx.records, kernels, schedule, constants, shared=options.dedup != "none")
        for node, programs in branches.items():
            _record_branches(ctx.records, node, programs)
        return target.assemble(schedule, kernels, constants, records=encode(ctx.records), metadata={"model": ctx.records.model, **ctx.metadata})
