"""`fuseline diff`: two models, artifacts or saved statistics side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import msgspec

from fuseline.cli.console import emit, say
from fuseline.cli.models import record_of
from fuseline.cli.options import compile_options, json_option, threads_option
from fuseline.errors import FuselineError
from fuseline.report.difference import difference, difference_lines
from fuseline.report.records import CompileRecord, DispatchRecord

_ENVELOPE = ("version", "command", "model", "target", "threads", "dispatch_table")


@click.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--fail-if", type=click.Choice(["any", "more-dispatches"]), multiple=True, help="Exit 1 on this difference.")
@compile_options
@threads_option
@json_option
def diff(before: Path, after: Path, fail_if: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Show what changed from BEFORE to AFTER; each is an ONNX file, a .fuse artifact, or the saved output of `stats --json`."""
    old, new = _record(before, options), _record(after, options)
    found = difference(old, new)
    if as_json:
        emit("diff", {"before": str(before), "after": str(after), **msgspec.to_builtins(found)})
    else:
        say(difference_lines(found) or ["no difference"])
    more = _dispatches(new) > _dispatches(old)
    if ("any" in fail_if and not found.empty) or ("more-dispatches" in fail_if and more):
        raise click.exceptions.Exit(1)


def _dispatches(record: CompileRecord) -> int:
    return int(record.statistics.get("dispatches", len(record.dispatches)))


def _record(path: Path, options: dict[str, Any]) -> CompileRecord:
    return _saved_record(path) if path.suffix == ".json" else record_of(path, options)


def _saved_record(path: Path) -> CompileRecord:
    try:
        saved: dict[str, Any] = json.loads(path.read_bytes())
        table = msgspec.convert(saved.get("dispatch_table", []), list[DispatchRecord])
        values = {key: value for key, value in saved.items() if key not in _ENVELOPE}
    except (OSError, ValueError, AttributeError, msgspec.ValidationError) as problem:
        raise FuselineError("E0501", f"no statistics: {problem}", node=str(path), hint="save `fuseline stats MODEL --dispatches --json`") from problem
    return CompileRecord(model=str(saved.get("model", "")), dispatches=table, statistics=values)
