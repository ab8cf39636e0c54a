"""`fuseline bench`: ours and the peers, interleaved in one run; medians and paired ratios with confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.table import Table

from fuseline.cli.console import emit, progress, say
from fuseline.cli.models import compiled, require_onnx
from fuseline.cli.options import compile_options, json_option, model_argument, parse_threads
from fuseline.errors import FuselineError
from fuseline.report.launches import dispatches_launched
from fuseline.report.quantities import seconds
from fuseline.report.records import DispatchRecord
from fuseline.runtime import Session
from fuseline.runtime.feed_files import Feeds, parse_feeds
from fuseline.verify.compare import compare, dependent_outputs
from fuseline.verify.dispatch_times import dispatch_seconds, program_run
from fuseline.verify.measure import best_of, interleaved, paired_ratio
from fuseline.verify.model_feeds import complete_feeds, model_hints

if TYPE_CHECKING:
    from fuseline.compiled_model import CompiledModel

OURS = "fuseline"


@click.command()
@model_argument
@click.option("--vs", default="", metavar="PEERS", help="onnxruntime, openvino or both with a comma.")
@click.option(
    "--threads",
    "threads_text",
    default=None,
    metavar="N,N",
    help="Thread counts to measure (default: the machine's cores).",
)
@click.option("--per-dispatch", is_flag=True, help="Time every dispatch on its own, too.")
@click.option(
    "--rounds",
    type=click.IntRange(min=3),
    default=15,
    show_default=True,
    help="Rounds in which every contender is timed.",
)
@click.option("--input", "inputs", multiple=True, metavar="NAME=@FILE.npy", help="A feed; others are generated.")
@compile_options
@json_option
def bench(
    model: Path,
    vs: str,
    threads_text: str | None,
    per_dispatch: bool,
    rounds: int,
    inputs: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Measure MODEL, interleaved with the peers named by --vs; ratios below 1 mean that fuseline is faster."""
    peers = [name.strip() for name in vs.split(",") if name.strip()]
    if peers:
        require_onnx(model, "--vs")
    counts = parse_threads(threads_text) if threads_text else [None]
    prepared = [_prepared(model, count, inputs, options) for count in counts]
    results = [measure_program(program, model, peers, feeds, rounds) for program, feeds in prepared]
    tables = [_dispatch_times(*prepared[-1])] if per_dispatch else []
    if as_json:
        emit("bench", {"model": str(model), "results": results, "dispatches": tables[0] if tables else []})
        return
    say(result_table(results, peers))
    for rows in tables:
        say("")
        say(_dispatch_table(rows))


def measure_program(program: CompiledModel, model: Path, peers: list[str], feeds: Feeds, rounds: int) -> dict[str, Any]:
    """One thread count: median seconds of every contender, paired ratios ours / peer, and errors against the peers."""
    from fuseline.interop.peers import load_peer

    loaded = {name: load_peer(name, model, program.threads) for name in peers}
    contenders = {OURS: program.bind(feeds)} | {name: peer.bind(feeds) for name, peer in loaded.items()}
    errors = {name: _error(program, feeds, peer.run(feeds), model) for name, peer in loaded.items()}
    with progress(f"timing {model.name}, {program.threads} threads") as report:
        times = interleaved(contenders, rounds=rounds, progress=lambda done, total: report("round", done, total))
    return {"threads": program.threads, **_summary(times, peers), "relative_error": errors}


def _prepared(
    model: Path, threads: int | None, inputs: tuple[str, ...], options: Mapping[str, Any]
) -> tuple[CompiledModel, Feeds]:
    program = compiled(model, {**options, "threads": threads})
    given = parse_feeds(inputs, [item.name for item in program.inputs])
    return program, complete_feeds(program, given, model_hints(model), 0)


def _error(program: CompiledModel, feeds: Feeds, expected: Feeds, model: Path) -> float:
    """The largest error relative to the largest magnitude, after making sure that the outputs depend on the inputs."""
    ours = program.run(feeds)
    other = complete_feeds(program, {}, model_hints(model), 1, like=feeds)
    found = compare(ours, expected, dependent_outputs(ours, program.run(other)))
    return max(item.error for item in found)


def _summary(times: Mapping[str, np.ndarray], peers: list[str]) -> dict[str, Any]:
    best = best_of(times, peers)
    ratios = {name: _ratio(times, name) for name in peers}
    return {
        "median_seconds": {name: float(np.median(values)) for name, values in times.items()},
        "ratios": ratios,
        "best_peer": best,
        "ratio_best_peer": ratios[best]["value"] if best else None,
    }


def _ratio(times: Mapping[str, np.ndarray], peer: str) -> dict[str, float]:
    found = paired_ratio(times[OURS], times[peer])
    return {"value": found.value, "low": found.low, "high": found.high}


def result_table(results: list[dict[str, Any]], peers: list[str]) -> Table:
    """One row per thread count: our median, and for each peer its median and the ratio with its confidence interval."""
    table = Table(
        "threads",
        OURS,
        *(word for name in peers for word in (name, "ratio")),
        box=None,
        header_style="bold",
        pad_edge=False,
    )
    for column in table.columns:
        column.justify = "right"
    for result in results:
        medians = result["median_seconds"]
        cells = [cell for name in peers for cell in (seconds(medians[name]), _ratio_text(result["ratios"][name]))]
        table.add_row(str(result["threads"]), seconds(medians[OURS]), *cells)
    return table


def _ratio_text(ratio: Mapping[str, float]) -> str:
    return f"{ratio['value']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]"


def _dispatch_times(program: CompiledModel, feeds: Feeds) -> list[dict[str, Any]]:
    if not isinstance(program.session, Session):
        raise FuselineError("E0501", "--per-dispatch needs a target with code", hint="use --target cpu")
    artifact = program_run(program.session.artifact, feeds, program.threads)
    times = dispatch_seconds(artifact, feeds, program.threads)
    # what is on record is the program that ordinary sizes run
    recorded = program.record.dispatches if artifact is not program.session.artifact.fallback else ()
    rows: list[dict[str, Any]] = []
    for (label, taken), found in zip(times, dispatches_launched(recorded, [label for label, _ in times]), strict=True):
        known = found or DispatchRecord(name=label, executable=label, root=label, members=[])
        moved = known.bytes_read + known.bytes_written
        predicted = known.predicted_ns * 1e-9
        row = {
            "dispatch": known.name,
            "root": known.root,
            "seconds": taken,
            "predicted_seconds": predicted,
            "flops": known.flops,
            "bytes": moved,
        }
        rows.append(row)
    return rows


def _dispatch_table(rows: list[dict[str, Any]]) -> Table:
    table = Table(
        "dispatch", "root", "time", "predicted", "GFLOP/s", "GB/s", box=None, header_style="bold", pad_edge=False
    )
    for column in table.columns[2:]:
        column.justify = "right"
    for row in rows:
        taken = max(row["seconds"], 1e-9)
        rates = (f"{row[key] / taken / 1e9:.1f}" for key in ("flops", "bytes"))
        table.add_row(row["dispatch"], row["root"], seconds(taken), seconds(row["predicted_seconds"]), *rates)
    return table
