"""`fuseline report`: one offline HTML page about a compile, or two side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fuseline.cli.console import emit, say
from fuseline.cli.options import compile_options, json_option, model_argument, threads_option
from fuseline.cli.output import deliver, is_stdout, refuse_two_documents


@click.command()
@model_argument
@click.argument("second", type=click.Path(path_type=Path), required=False)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The page (default: MODEL with .html); - for standard output.",
)
@click.option(
    "--compare-with",
    "changes",
    multiple=True,
    metavar="OPTION=VALUE",
    help="Compare with a compile that differs in this: fusion=none, without-rule=row-chain, dedup=shapes, plan=p.toml.",
)
@click.option("--measure", is_flag=True, help="Time every dispatch, whole runs and the machine's peaks, too.")
@click.option("--assembly", is_flag=True, help="Put the assembly of every kernel into the page.")
@click.option("--ir/--no-ir", default=True, show_default=True, help="Put the IR after each phase into the page.")
@compile_options
@threads_option
@json_option
def report(
    model: Path,
    second: Path | None,
    output: Path | None,
    changes: tuple[str, ...],
    measure: bool,
    assembly: bool,
    ir: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Write one HTML page about the compile of MODEL: its dispatches as a graph, decisions with reasons, time, memory;
    it needs no network.

    SECOND is compared with it: another model or artifact, a fusion plan (.toml) for the same model, or the saved
    output of `stats --dispatches --decisions --json`.
    """
    import fuseline
    from fuseline.cli.errors import page_text
    from fuseline.cli.report_sides import Extras, SideMaker, wanted_sides
    from fuseline.report.advice import ADVICE
    from fuseline.report.page import PageInputs, render_page

    refuse_two_documents(output, as_json)
    wanted = wanted_sides(model, second, changes, options)
    sides = SideMaker(Extras(ir, assembly, measure)).sides(wanted)
    missed = {decision.code for side in sides for decision in side.record.decisions if decision.verdict != "fused"}
    reasons = {code: page_text(code) for code in sorted(missed) if code in ADVICE}
    inputs = PageInputs(sides[0], sides[1] if len(sides) > 1 else None, reasons, fuseline.__version__)
    page = render_page(inputs).encode()
    path = output or model.with_suffix(".html")
    deliver(path, page)
    if as_json:
        emit("report", {"model": str(model), "output": str(path), "bytes": len(page)})
    elif not is_stdout(path):
        say(str(path))
