"""The program that a compile begins with: a model or text as IR, in a context that knows the target."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from fuseline.border import border
from fuseline.cache.key import model_name
from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.repeat import MlirText
from fuseline.timeline import span

if TYPE_CHECKING:
    from fuseline.targets.target import Target
from fuseline.pipeline import PHASES, pipeline_version


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


def add_seconds(ctx: CompilerContext, phase: str, start: float) -> None:
    """Count the time since `start` (`time.perf_counter`, seconds) as the phase's, in the records."""
    seconds = ctx.records.phase_seconds
    seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - start


def report_progress(options: CompileOptions, phase: str, done: int, total: int) -> None:
    """Tell whoever wants to know that `phase` begins, with `done` of `total` phases behind it."""
    if options.progress is not None:
        options.progress(phase, done, total)


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
