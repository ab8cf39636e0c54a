"""`fuseline fuse`: the model again, each dispatch a function of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from fuseline.cli.console import emit, progress, say, warn
from fuseline.cli.models import require_model
from fuseline.cli.options import json_option, partition_options, threads_option
from fuseline.cli.output import deliver, is_stdout, refuse_two_documents
from fuseline.errors import FuselineError


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Where the model goes (default: MODEL with .fused.onnx, or .optimized.onnx); - for standard output.",
)
@click.option(
    "--optimized", is_flag=True, help="Write the cleaned and re-laid-out graph instead, in operators of the standard."
)
@partition_options
@threads_option
@json_option
def fuse(model: Path, output: Path | None, optimized: bool, as_json: bool, **options: Any) -> None:
    """Write the ONNX model MODEL again, each dispatch an ONNX function, the main graph the graph of dispatches.

    It computes the same in every runtime, and compiles to the same dispatches.
    """
    import fuseline

    require_model(model, "fuse")
    refuse_two_documents(output, as_json)
    if optimized and is_stdout(output):
        raise FuselineError("E0501", "--optimized writes a file", hint="give one: -o FILE")
    if optimized:
        from fuseline.cli.optimized_graph import write_optimized

        write_optimized(model, output, as_json, options)
        return
    path = output or model.with_suffix(".fused.onnx")
    with progress(f"fusing {model.name}") as report:
        fused = fuseline.fuse(model, progress=report, **options)
        report("writing", 0, 0)
        files = [] if is_stdout(path) else fused.save(path)
    if is_stdout(path):
        deliver(path, fused.to_bytes())
        return
    warn(fused.record.warnings)
    if as_json:
        about = {"model": str(model), "output": str(path), "files": files, "warnings": fused.record.warnings}
        emit("fuse", {**about, **msgspec.to_builtins(fused.summary)})
        return
    from fuseline.report.exported import exported_table

    say(exported_table(msgspec.to_builtins(fused.summary)))
    say(f"{path}: plan {fused.summary.plan}")
