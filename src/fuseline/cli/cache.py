"""`fuseline cache`: where compiles leave what later ones find, how much it is, and away with it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
from rich.table import Table

from fuseline.cache import folder
from fuseline.cli.console import emit, say
from fuseline.cli.options import json_option
from fuseline.errors import FuselineError
from fuseline.report.quantities import plural, quantity

RECORDS = ("export", "import")

_WHAT = {
    "objects": "object code of kernels",
    "programs": "finished programs",
    "models": "digests of model files",
    "tuning": "what searches found of kernels",
    "shipped": "files that a cluster's work came with",
}


@click.command()
@click.argument("action", type=click.Choice(["info", "path", "clear", *RECORDS]), default="info")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@json_option
def cache(action: str, file: Path | None, as_json: bool) -> None:
    """Say what the cache holds (info, the default), where it is (path), or drop everything in it (clear); write its
    tuning records to FILE (export), or take in those of one (import)."""
    path = str(folder.cache_folder())
    if (file is None) is (action in RECORDS):
        hint = "fuseline cache export FILE, fuseline cache import FILE"
        raise FuselineError("E0501", f"{action} takes {'a' if file is None else 'no'} file", hint=hint)
    if file is not None:
        _records(action, file, as_json)
    elif action == "path":
        _show({"path": path}, path, as_json)
    elif action == "clear":
        files, size = folder.clear()
        text = f"{path}: {plural(files, 'file')} dropped, {quantity(size)}B"
        _show({"path": path, "files_dropped": files, "bytes_dropped": size}, text, as_json)
    else:
        _info(path, as_json)


def _records(action: str, file: Path, as_json: bool) -> None:
    from fuseline.tuning.records import export_records, import_records

    count = export_records(file) if action == "export" else import_records(file)
    done = "written to" if action == "export" else "taken in from"
    _show({"file": str(file), "records": count}, f"{plural(count, 'tuning record')} {done} {file}", as_json)


def _show(document: dict[str, object], text: str, as_json: bool) -> None:
    if as_json:
        emit("cache", document)
    else:
        say(text)


def _info(path: str, as_json: bool) -> None:
    kinds = _totals(folder.entries())
    limit, total = folder.size_limit(), sum(size for _, size in kinds.values())
    off = [kind for kind in folder.KINDS if folder.disabled(kind)]
    if as_json:
        sizes = {kind: {"files": files, "bytes": size} for kind, (files, size) in kinds.items()}
        emit("cache", {"path": path, "limit": limit, "bytes": total, "off": off, "kinds": sizes})
        return
    shown = Table("kind", "what", "files", "size", box=None, pad_edge=False)
    for kind, (files, size) in kinds.items():
        shown.add_row(kind, _WHAT[kind], str(files), f"{quantity(size)}B")
    say(shown)
    say(f"{quantity(total)}B of {quantity(limit)}B in {path}")
    if off:
        say(f"FUSELINE_NO_CACHE is set: neither looked up nor kept are {', '.join(off)}")
    elif total > limit:
        say("more than the limit: what was not needed for longest goes with the next compile")


def _totals(entries: Iterable[folder.Entry]) -> dict[str, tuple[int, int]]:
    totals: dict[str, tuple[int, int]] = dict.fromkeys(folder.KINDS, (0, 0))
    for entry in entries:
        files, size = totals[entry.kind]
        totals[entry.kind] = files + 1, size + entry.bytes
    return totals
