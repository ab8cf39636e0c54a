"""`fuseline diff`: two models, artifacts, plans or saved statistics side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from fuseline.cli.console import emit, err, say
from fuseline.cli.models import is_model, refuse_compile_options
from fuseline.cli.options import compile_options, json_option, threads_option
from fuseline.cli.saved import any_record
from fuseline.report.difference import Difference, difference, difference_lines
from fuseline.report.records import CompileRecord
from fuseline.report.regressions import ANY, CONDITIONS, regression


@click.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--fail-if", type=click.Choice(CONDITIONS), multiple=True, help="Exit 1 on this difference.")
@compile_options
@threads_option
@json_option
def diff(before: Path, after: Path, fail_if: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Show what changed from BEFORE to AFTER: dispatches that appeared, vanished or changed, and the decisions that did
    it.

    Each is an ONNX file, a .fuse artifact, a plan (.toml), or the saved output of `stats --dispatches --decisions
    --json` (.json).
    """
    old, new = (any_record(path, options if is_model(path) else {}) for path in (before, after))
    if not is_model(before) and not is_model(after):
        refuse_compile_options(options)
    found = difference(old, new)
    failed = _failures(fail_if, found, old, new)
    if as_json:
        emit("diff", {"before": str(before), "after": str(after), **msgspec.to_builtins(found), "failed": failed})
    else:
        say(difference_lines(found) or ["no difference"])
        for condition, change in failed.items():
            err().print(f"fail-if {condition}: {change}")
    if failed:
        raise click.exceptions.Exit(1)


def _failures(conditions: tuple[str, ...], found: Difference, old: CompileRecord, new: CompileRecord) -> dict[str, str]:
    """The conditions that are met, with how."""
    failed = {name: change for name in conditions if name != ANY and (change := regression(name, old, new)) is not None}
    return {ANY: "they differ", **failed} if ANY in conditions and not found.empty else failed
