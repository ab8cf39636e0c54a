"""`fuseline graph`: the dispatches of a model for other viewers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from fuseline.cli.console import emit
from fuseline.cli.models import compiled, record_of
from fuseline.cli.native import native_session
from fuseline.cli.options import compile_options, json_option, model_argument, threads_option
from fuseline.cli.output import STDOUT, deliver, refuse_two_documents
from fuseline.cli.run import complete_feeds, model_hints
from fuseline.errors import FuselineError

DOT, MODEL_EXPLORER = "dot", "model-explorer"


@click.command()
@model_argument
@click.option(
    "--format",
    "form",
    type=click.Choice([DOT, MODEL_EXPLORER]),
    default=DOT,
    show_default=True,
    help="For which viewer.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file; else standard output.")
@click.option(
    "--node-data",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write Model Explorer's node data, too: the time of each dispatch.",
)
@click.option("--measure", is_flag=True, help="Measure the times of --node-data rather than predict them.")
@compile_options
@threads_option
@json_option
def graph(
    model: Path,
    form: str,
    output: Path | None,
    node_data: Path | None,
    measure: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Write the dispatches of MODEL, their ops and the reasons on their edges, as a graph for Graphviz (dot) or Model
    Explorer."""
    from fuseline.report.viewers import dot, model_explorer

    refuse_two_documents(output or STDOUT, as_json)
    if measure and node_data is None:
        raise FuselineError("E0501", "--measure is for --node-data", hint="add --node-data FILE")
    program = compiled(model, options) if measure else None
    record = record_of(model, options) if program is None else program.record
    graphs = model_explorer.graphs(record)
    text = dot.dot(record) if form == DOT else msgspec.json.encode(graphs).decode() + "\n"
    if node_data is not None:
        taken = () if program is None else _measured(program, model)
        deliver(node_data, msgspec.json.encode(model_explorer.node_data(record, taken)))
    deliver(output or STDOUT, text)
    if as_json:
        data = {} if node_data is None else {"node_data": str(node_data)}
        emit("graph", {"model": str(model), "output": str(output), "format": form, **data})


def _measured(program: Any, model: Path) -> list[float]:
    from fuseline.verify.side_times import record_seconds

    session = native_session(program, "--measure")
    return record_seconds(session, program.record, complete_feeds(program, {}, model_hints(model), 0))
