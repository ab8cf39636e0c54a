"""Programs whose text was emitted behind a stage: what they have behind them, and writing such texts.

From `fusion` on a text says which ops run together, and passes that look for more would only put that at risk: its
regions stay as they are. Earlier stages go through the passes anew, which change nothing the second time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.ops import FillOp
from xdsl.ir import Operation

from fuseline.analysis.structured import is_generic
from fuseline.compile_options import CompileOptions
from fuseline.ir.context import CompilerContext, Emitted
from fuseline.ir.functions import functions
from fuseline.ir.stage_file import StageFile
from fuseline.ir.weights_file import weights_beside
from fuseline.runtime.files import write_files
from fuseline.version import VERSION

DECIDED = ("fusion", "dispatch", "dedup")
"""The stages whose text says which ops run together."""

Notice = Callable[[int, int], object]


def stage_behind(module: ModuleOp, ctx: CompilerContext, options: CompileOptions, pipeline: str) -> str:
    """The stage of `DECIDED` that the program of a text has behind it and keeps; empty where the passes, those of this
    `pipeline`, run from the start: for a text that is no such stage or was written by another version, where an op
    stands beside the dispatches, and with options that say how to fuse. Why is noted in the records.
    """
    emitted = ctx.emitted
    if emitted is None or emitted.stage not in DECIDED or not _leaves_fusion(options, ctx):
        return ""
    if (emitted.version, emitted.pipeline) != (VERSION, pipeline):
        by = f"fuseline {emitted.version} with the passes {emitted.pipeline} (here {VERSION}, {pipeline})"
        ctx.records.notes.append(f"the IR was written by {by}: it goes through all passes again")
        return ""
    alone = next((op for function in functions(module) for op in _undispatched(function)), None)
    if alone is not None:
        ctx.records.notes.append(f"{alone.name} stands beside the dispatches of the IR: all passes run again")
        return ""
    if emitted.target != ctx.target.name:
        ctx.records.notes.append(f"the dispatches are those that the IR has, formed for {emitted.target}")
    return emitted.stage


def _undispatched(function: FuncOp) -> Iterator[Operation]:
    """Ops that no dispatch of ours has as they are: those that compute and lie in none, and named ones."""
    for op in function.walk():
        if is_generic(op):
            if op.parent_op() is function:
                yield op
        elif isinstance(op, LinalgStructuredOperation) and not isinstance(op, FillOp):
            yield op


def _leaves_fusion(options: CompileOptions, ctx: CompilerContext) -> bool:
    asked = options.plan or options.rules or options.without_rules or options.passes is not None
    limited = options.code_limits or "form-dispatch-regions" in options.pass_options
    return not asked and not limited and options.fusion in ("default", ctx.records.fusion)


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


def stage_text(part: StageFile, limit: int, notice: Notice | None) -> str:
    """A text alone, weights of up to `limit` bytes in it: of others, which are names, `notice` is told how many there
    are and what they take in bytes."""
    left_out = weights_beside(part.module, part.ctx, limit)
    if left_out and notice is not None:
        notice(len(left_out), sum(array.nbytes for array in left_out.values()))
    return part.alone(limit)


def write_stage(module: ModuleOp, ctx: CompilerContext, path: Path, stage: str, pipeline: str) -> str:
    """Write the IR, complete, to `path`, and its weights beside it, both or neither; answers the text. `pipeline`: of
    the passes that a compile runs.

    Raises FuselineError (E0502) for places that cannot be written or that hold what is no file of ours.
    """
    emitted = ctx.emitted
    if emitted is not None and emitted.stage in DECIDED and stage not in DECIDED:
        stage = emitted.stage  # there is no way back
    said = Emitted(VERSION, pipeline, ctx.target.name, stage)
    return write_stage_files(path, [StageFile(module, ctx, path, said)])


def write_stage_files(path: Path, parts: Sequence[StageFile], join: Callable[[list[str]], str] = "".join) -> str:
    """Write a text of modules, and the weights of each beside it: all files or none; answers the text, `join` of those
    of the modules. Raises FuselineError (E0502), as `write_stage` does."""
    text: list[str] = []

    def write(file: BinaryIO) -> None:
        text.append(join([part.text() for part in parts]))
        file.write(text[0].encode())

    beside = {place: writer for part in parts for place, writer in part.writers().items()}
    write_files({**beside, path: write})
    return text[0]
