"""`fuseline fuse --optimized`: the cleaned and re-laid-out graph, in plain operators."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fuseline.cli.console import emit, progress, say
from fuseline.cli.options import flag_of, given_options
from fuseline.errors import FuselineError


def write_optimized(model: Path, output: Path | None, as_json: bool, options: Mapping[str, Any]) -> None:
    """Write the optimized graph of `model` and say what was done. Raises FuselineError: E0501 for options about
    dispatches, which this graph has none of, and as `fuseline.optimize` does."""
    import fuseline
    from fuseline.report.optimized import left_lines, optimized_table

    for name in given_options(options):
        raise FuselineError("E0501", f"--optimized forms no dispatches, and leaves nothing for {flag_of(name)}")
    path = output or model.with_suffix(".optimized.onnx")
    with progress(f"optimizing {model.name}") as report:
        optimized = fuseline.optimize(model)
        report("writing", 0, 0)
        files = optimized.save(path)
    summary = optimized.summary.as_json()
    if as_json:
        emit("fuse", {"model": str(model), "output": str(path), "files": files, **summary})
        return
    say(optimized_table(summary))
    say(left_lines(summary))
    say(f"{path}: {summary['nodes']['before']} nodes, now {summary['nodes']['after']}")
