"""`fuseline tune --fit`: the costs that dispatches are predicted with, fitted to what dispatches of models take."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.table import Table

from fuseline.cli.console import emit, note, progress, say
from fuseline.cli.machine import description
from fuseline.cli.options import json_option, parse_threads
from fuseline.cli.output import deliver, is_stdout, refuse_two_documents
from fuseline.errors import FuselineError
from fuseline.report.quantities import plural

if TYPE_CHECKING:
    from fuseline.ir.work_costs import WorkCosts
    from fuseline.tuning.fit.fitting import Fit
    from fuseline.tuning.fit.validation import Quality

FLAG = "--fit"
RECORDS = Path("dispatches.jsonl")


class OrFit(click.Command):
    """A command that is another one where `--fit` is among its arguments."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of whichever command is meant."""
        if FLAG in args:
            return tune_fit.make_context(info_name, args, parent=parent, **extra)
        return super().make_context(info_name, args, parent=parent, **extra)


@click.command()
@click.argument("models", nargs=-1, type=click.Path(path_type=Path))
@click.option(FLAG, "fits", is_flag=True, help="This command.")
@click.option(
    "--records",
    type=click.Path(path_type=Path, dir_okay=False),
    default=RECORDS,
    show_default=True,
    metavar="FILE",
    help="Where measured dispatches are kept: what it has is not measured again.",
)
@click.option(
    "--write",
    "output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the machine with its fitted costs, for `--target cpu:FILE` (- for standard output).",
)
@click.option("--target", default="cpu", show_default=True, help="cpu, cpu:ISA, or a description to begin at.")
@click.option(
    "--threads", "threads_text", default="1", show_default=True, metavar="N,N", help="Compiles of each model."
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="How often each model is measured, apart in time; the least counts.",
)
@json_option
def tune_fit(
    models: tuple[Path, ...],
    fits: bool,
    records: Path,
    output: Path | None,
    target: str,
    threads_text: str,
    rounds: int,
    as_json: bool,
) -> None:
    """Measure the dispatches of MODELS, and fit the costs that dispatches are predicted with (`[work_costs]`) to them
    and to all other dispatches in the records of this kind of machine.

    The table shows how well each model is predicted by costs that were fitted to the others, before and after.
    """
    del fits
    from fuseline.api import compile as compile_model
    from fuseline.targets.cpu.target import CpuTarget
    from fuseline.tuning.fit.collection import Collection
    from fuseline.tuning.fit.fitting import fit

    refuse_two_documents(output, as_json)
    made = _made(target)
    if not isinstance(made, CpuTarget):
        hint = "use --target cpu, or a description of one (cpu:FILE)"
        raise FuselineError("E0501", f"nothing can be measured for {target}: it has no code of ours", hint=hint)
    known = made.description
    with progress("tune --fit") as report:
        counts = [count or 1 for count in parse_threads(threads_text)]
        collection = Collection(compile_model, target, counts, rounds=rounds, progress=report)
        found = collection.collect(list(dict.fromkeys(models)), records)
        result = fit(found, target, known.work_costs, report)
    if output is not None:
        deliver(output, description(made.machine, known.costs, result.costs))
    if as_json:
        emit("tune", {"fit": msgspec.to_builtins(_finite(result)), "target": target, "records": str(records)})
    elif not is_stdout(output or Path()):
        _show(result, known.work_costs)


def _made(target: str) -> Any:
    from fuseline.targets import create_target

    return create_target(target)


def _finite(result: Fit) -> Any:
    """The result with nothing that JSON cannot say: a correlation that there is none of is null."""
    built = msgspec.to_builtins(result)
    for row in built["models"]:
        for quality in (row["before"], row["after"]):
            quality["correlation"] = quality["correlation"] if isfinite(quality["correlation"]) else None
    return built


def _show(result: Fit, before: WorkCosts) -> None:
    say(_models_table(result))
    say("")
    say(_costs_table(before, result.costs))
    for count, what in ((result.other_machines, "another kind of machine"), (result.other_targets, "another target")):
        if count:
            note(f"{plural(count, 'record')} of {what} left out")


def _models_table(result: Fit) -> Table:
    table = _table("model left out", "threads", "dispatches", "error before", "after", "rank correlation", "after")
    for row in result.models:
        cells = [*_qualities(row.before, row.after, "error"), *_qualities(row.before, row.after, "correlation")]
        table.add_row(row.model, str(row.threads), str(row.dispatches), *cells)
    return table


def _qualities(before: Quality, after: Quality, name: str) -> Sequence[str]:
    return [f"{getattr(one, name):.3f}" for one in (before, after)]


def _costs_table(before: WorkCosts, after: WorkCosts) -> Table:
    table = _table("ns per unit of", "before", "fitted", "ratio")
    for name in type(after).__slots__:
        first, then = getattr(before, name), getattr(after, name)
        table.add_row(name, f"{first:.3g}", f"{then:.3g}", f"{then / first:.2f}" if then != first else "as it was")
    return table


def _table(*columns: str) -> Table:
    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    return table
