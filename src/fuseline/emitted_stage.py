"""Programs whose text was emitted behind a stage: what they have behind them, and writing such texts.

A phase that a text has behind it is not run again: it might find more, and make another program. What keeps reads and
writes inside of tensors is asked of every text. One that somebody has changed goes through all passes, but for one that
says which ops run together and still says it of all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.ops import FillOp, TransposeOp

from fuseline.analysis.structured import is_generic
from fuseline.compile_options import CompileOptions
from fuseline.dispatch.view import MEMBERS_ATTRIBUTE
from fuseline.ir.context import CompilerContext, Emitted
from fuseline.ir.fast.direct import ops_of
from fuseline.ir.flow import DispatchRegionOp
from fuseline.ir.functions import functions
from fuseline.ir.stage_file import StageFile
from fuseline.ir.weights_file import weights_beside
from fuseline.passes.dispatch.open_regions import dissolve
from fuseline.runtime.files import write_files
from fuseline.version import VERSION

BEFORE_FUSION = "padding"
"""What a text behind `fusion` keeps of its phases where options say how to fuse: a round of fusion starts from the
regions that it has."""

DECIDED = ("fusion", "dispatch", "dedup")
"""The stages whose text says which ops run together."""

OUTLINED = ("dispatch", "dedup")
"""Those whose dispatches are no regions any more, which nothing takes apart."""

Notice = Callable[[int, int], object]


def stage_behind(
    module: ModuleOp, ctx: CompilerContext, options: CompileOptions, pipeline: str, phases: Mapping[str, Sequence[str]]
) -> str:
    """The phase that the program of a text has behind it and keeps, with those before it; empty where the passes, those
    of this `pipeline`, run from the start: for a text that was written by another version or, before `fusion`, for
    another target, that is not as it was written, and with options that concern what is done. Why is noted in the
    records, unless the options say it.
    """
    emitted = ctx.emitted
    stage = "" if emitted is None else emitted.stage
    if stage == "fusion" and _asks_for_fusion(options, ctx):
        stage = BEFORE_FUSION
        _open_long_ones(module, ctx, options.code_limits)
    if emitted is None or stage not in phases or _asks_for_more(stage, options, ctx, phases):
        return ""
    if (emitted.version, emitted.pipeline) != (VERSION, pipeline):
        by = f"fuseline {emitted.version} with the passes {emitted.pipeline} (here {VERSION}, {pipeline})"
        ctx.records.notes.append(f"the IR was written by {by}: it goes through all passes again")
        return ""
    if not (emitted.body or _still_decided(module, stage)):
        ctx.records.notes.append("the IR is not as it was written: all passes run again")
        return ""
    made, wanted = _machine(emitted.target, emitted.numerics), _machine(ctx.target.name, ctx.target.numerics)
    if made != wanted and stage in DECIDED:
        ctx.records.notes.append(f"the dispatches are those that the IR has, which was made for {made}, not {wanted}")
    return stage if made == wanted or stage in DECIDED else ""


def _machine(target: str, numerics: str) -> str:
    return f"{target} ({numerics} numerics)"


def _still_decided(module: ModuleOp, stage: str) -> bool:
    """Whether a text that was changed still says of all ops in which dispatch they are."""
    return stage in DECIDED and not any(map(_has_more, functions(module)))


def stage_said(module: ModuleOp, ctx: CompilerContext) -> str:
    """The stage that a text may claim for a program that was read from one: none (`input`) for a changed one."""
    emitted = ctx.emitted
    return emitted.stage if emitted is not None and (emitted.body or _still_decided(module, emitted.stage)) else "input"


def _has_more(function: FuncOp) -> bool:
    """Whether a function has ops that compute and lie in no dispatch, or named ones that our passes do not make."""
    for op in function.walk():
        if is_generic(op):
            if op.parent_op() is function:
                return True
        elif isinstance(op, LinalgStructuredOperation) and not isinstance(op, FillOp | TransposeOp):
            return True
    return False


def _asks_for_more(
    stage: str, options: CompileOptions, ctx: CompilerContext, phases: Mapping[str, Sequence[str]]
) -> bool:
    """Whether options concern a pass that the program has behind it."""
    names = [name for phase in list(phases)[: list(phases).index(stage) + 1] for name in phases[phase]]
    other = stage in DECIDED and _asks_for_fusion(options, ctx)
    return other or options.passes is not None or not options.pass_options.keys().isdisjoint(names)


def _asks_for_fusion(options: CompileOptions, ctx: CompilerContext) -> bool:
    """Whether options say how to fuse; the level that the text was made with is the default."""
    asked = options.plan or options.rules or options.without_rules or options.code_limits
    return bool(asked) or options.fusion not in ("default", ctx.records.fusion)


def _open_long_ones(module: ModuleOp, ctx: CompilerContext, limits: Collection[str]) -> None:
    """Dissolve the regions with members that have a limit of code: they are to be formed again, and what was decided
    about their members is decided anew."""
    for function in functions(module):
        for op in ops_of(function.body.block):
            if type(op) is DispatchRegionOp and not (members := _members(op)).isdisjoint(limits):
                dissolve(op)
                decisions = ctx.records.decisions
                decisions[:] = [one for one in decisions if not {one.producer, one.consumer} <= members]


def _members(region: DispatchRegionOp) -> set[str]:
    names = region.attributes.get(MEMBERS_ATTRIBUTE)
    return {name.data for name in names if isinstance(name, StringAttr)} if isinstance(names, ArrayAttr) else set()


def stage_after(stage: str, passes: Sequence[str], phases: Mapping[str, Sequence[str]]) -> str:
    """The stage that a program has behind it which had `stage` and went through `passes`: that of the last phase whose
    passes all ran in order. Where others ran, what the text says of dispatches may hold no longer, and there is none
    (`input`), but for passes of phases behind a stage of `DECIDED`."""
    behind = list(phases)
    later = behind[behind.index(stage) + 1 :] if stage in behind else behind
    left = list(passes)
    for phase in later:
        names = list(phases[phase])
        if not left or left[: len(names)] != names:
            break
        stage, left = phase, left[len(names) :]
    kept = [name for phase in behind[behind.index(stage) + 1 :] for name in phases[phase]] if stage in DECIDED else []
    return stage if set(left) <= {*kept} else "input"


def stage_text(file: StageFile, limit: int, notice: Notice | None) -> str:
    """A text alone, weights of up to `limit` bytes in it: of others, which are names, `notice` is told how many there
    are and what they take in bytes."""
    left_out = weights_beside(file.module, file.ctx, limit)
    if left_out and notice is not None:
        notice(len(left_out), sum(array.nbytes for array in left_out.values()))
    return file.alone(limit)


def write_stage(
    module: ModuleOp,
    ctx: CompilerContext,
    path: Path,
    stage: str,
    pipeline: str,
    literal: tuple[ModuleOp, CompilerContext] | None = None,
) -> str:
    """Write the IR, complete, to `path`, and its weights beside it, both or neither; answers the text. `pipeline`: of
    the passes that a compile runs; `literal`: the program for sizes that broadcast as they are, where there is one.

    Raises FuselineError (E0502) for places that cannot be written or that hold what is no file of ours.
    """
    if stage not in DECIDED and (before := stage_said(module, ctx)) in DECIDED:
        stage = before  # there is no way back
    said = Emitted(VERSION, pipeline, ctx.target.name, ctx.target.numerics, stage)
    return write_stage_files(path, [StageFile(module, ctx, path, said, literal=literal)])


def write_stage_files(path: Path, files: Sequence[StageFile], join: Callable[[list[str]], str] = "".join) -> str:
    """Write a text of modules, and the weights of each beside it: all files or none; answers the text, `join` of those
    of the modules. Raises FuselineError (E0502), as `write_stage` does."""
    text: list[str] = []

    def write(out: BinaryIO) -> None:
        text.append(join([file.text() for file in files]))
        out.write(text[0].encode())

    beside = {place: writer for file in files for place, writer in file.writers().items()}
    write_files({**beside, path: write})
    return text[0]
