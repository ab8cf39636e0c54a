"""`fuseline targets`: what can be compiled for, with where each target comes from; and a check of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from fuseline.cli.console import emit, progress, say
from fuseline.cli.options import json_option
from fuseline.errors import FuselineError
from fuseline.report.quantities import plural

if TYPE_CHECKING:
    from fuseline.targets.outside.listing import TargetInfo

_OF_OTHERS = ("E0801", "E0802", "E0501")


@click.command()
@click.argument("names", nargs=-1, metavar="[TARGET]...")
@click.option(
    "--check", is_flag=True, help="Compile small graphs for each TARGET, and say where it breaks the contract."
)
@json_option
def targets(names: tuple[str, ...], check: bool, as_json: bool) -> None:
    """List the targets of fuseline and of installed packages, and each TARGET (./npu.py, npu:4x4); the exit code is 1
    where one of a package or of TARGETs cannot be used."""
    from fuseline.targets import TARGETS
    from fuseline.targets.outside.listing import list_targets

    if check:
        _check(names, as_json)
        return
    infos = list_targets(TARGETS, names)
    if as_json:
        emit("targets", {"targets": [asdict(info) for info in infos]})
    else:
        say(_table(infos))
    if any(info.error is not None and info.error["code"] in _OF_OTHERS for info in infos):
        raise click.exceptions.Exit(1)


def _check(names: Sequence[str], as_json: bool) -> None:
    from fuseline.testing import GRAPHS, check_target

    if not names:
        raise FuselineError("E0501", "--check compiles for the targets that are named", hint="name one: ./npu.py")
    found: dict[str, list[str]] = {}
    for name in names:
        with progress(f"checking {name}"):
            found[name] = check_target(name)
    if as_json:
        emit("targets", {"graphs": list(GRAPHS), "problems": found})
    else:
        fine = f"keeps the contract on {plural(len(GRAPHS), 'graph')}"
        say([line for name, problems in found.items() for line in [f"{name}: {one}" for one in problems or [fine]]])
    if any(found.values()):
        raise click.exceptions.Exit(1)


def _table(infos: Sequence[TargetInfo]) -> Table:
    table = Table("target", "runs", "writes", "from", "what it is", box=None, header_style="bold", pad_edge=False)
    for info in infos:
        about = info.summary if info.error is None else _line(info.error)
        table.add_row(info.name, "yes" if info.runs else "-", info.writes or "-", info.origin, about)
    return table


def _line(error: Any) -> str:
    return str(FuselineError(error["code"], error["message"], hint=error["hint"]))
