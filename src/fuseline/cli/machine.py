"""`fuseline machine`: what work costs on this machine, beside what is assumed where nobody has measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from fuseline.cli.console import emit, progress, say
from fuseline.cli.options import json_option
from fuseline.cli.output import deliver, refuse_two_documents

if TYPE_CHECKING:
    from fuseline.ir.costs import MachineCosts
    from fuseline.ir.work_costs import WorkCosts
    from fuseline.targets.cpu.isa.description import Machine
    from fuseline.tuning.machine import Figure


@click.command()
@click.option(
    "--isa",
    default=None,
    metavar="NAME",
    help="avx512vnni, avx512, avxvnni, avx2, baseline or neon; the best this CPU has if left out.",
)
@click.option(
    "--write",
    "output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write it for `--target cpu:FILE` (- for standard output).",
)
@json_option
def machine(isa: str | None, output: Path | None, as_json: bool) -> None:
    """Measure what work costs on this machine, in under a minute, and compare with what the compiler assumes.

    Keep the machine quiet meanwhile: other work makes it look slower than it is.
    """
    from fuseline.api import compile as compile_model
    from fuseline.targets.cpu.isa import machine as machine_named
    from fuseline.tuning.machine import Measurement, measured

    refuse_two_documents(output, as_json)
    found = machine_named(isa or "")
    with progress("measuring") as report:
        figures = Measurement(compile_model, f"cpu:{found.name}", report).figures(found.costs)
    text = description(found, measured(found.costs, figures), found.work_costs)
    if output is not None:
        deliver(output, text)
    if as_json:
        emit(
            "machine",
            {
                "isa": found.name,
                "l1_bytes": found.l1_bytes,
                "l2_bytes": found.l2_bytes,
                "figures": [_json(figure) for figure in figures],
            },
        )
    elif str(output) != "-":
        say(f"cpu:{found.name}, {found.l1_bytes // 1024} KiB and {found.l2_bytes // 1024} KiB of cache per core")
        say(figure_table(figures))


def description(found: Machine, costs: MachineCosts, work_costs: WorkCosts) -> str:
    """The TOML that `--target cpu:FILE` reads."""
    sizes = [f'isa = "{found.name}"', f"l1_bytes = {found.l1_bytes}", f"l2_bytes = {found.l2_bytes}"]
    return "\n".join([*sizes, *_table("costs", costs), *_table("work_costs", work_costs), ""])


def _table(name: str, costs: MachineCosts | WorkCosts) -> list[str]:
    return ["", f"[{name}]", *(f"{entry} = {getattr(costs, entry)!r}" for entry in type(costs).__slots__)]


def figure_table(figures: list[Figure]) -> Table:
    """One row per figure: assumed, measured, and the ratio."""
    table = Table("figure", "assumed", "measured", "ratio", "how", box=None, header_style="bold", pad_edge=False)
    for figure in figures:
        numbers = (
            ("", "")
            if figure.measured is None
            else (f"{figure.measured:.3g}", f"{figure.measured / figure.assumed:.2f}")
        )
        table.add_row(figure.name, f"{figure.assumed:.6g}", *numbers, figure.how)
    return table


def _json(figure: Figure) -> dict[str, Any]:
    return {"name": figure.name, "assumed": figure.assumed, "measured": figure.measured, "how": figure.how}
