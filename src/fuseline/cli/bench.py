"""`fuseline bench`: ours and the peers, interleaved in one run; medians and paired ratios with confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.table import Table

from fuseline.cli.bench_many import bench_many, show_many
from fuseline.cli.console import emit, progress, say
from fuseline.cli.model_files import is_one_file
from fuseline.cli.model_rows import Workers
from fuseline.cli.models import compiled, require_onnx
from fuseline.cli.native import native_session
from fuseline.cli.options import compile_options, json_option, parse_threads, scheduler_options
from fuseline.errors import FuselineError
from fuseline.report.launches import dispatches_launched
from fuseline.report.quantities import seconds
from fuseline.report.records import DispatchRecord
from fuseline.runtime.feed_files import Feeds, parse_feeds
from fuseline.runtime.processors import allowed_processors
from fuseline.verify.compare import compare, dependent_outputs
from fuseline.verify.dispatch_times import dispatch_seconds, program_run
from fuseline.verify.measure import best_of, interleaved, paired_ratio
from fuseline.verify.model_feeds import complete_feeds, model_hints

if TYPE_CHECKING:
    from fuseline.compiled_model import CompiledModel

OURS = "fuseline"


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(path_type=Path))
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
@scheduler_options
@json_option
def bench(
    models: tuple[Path, ...],
    vs: str,
    threads_text: str | None,
    per_dispatch: bool,
    rounds: int,
    inputs: tuple[str, ...],
    scheduler: str | None,
    kind: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure MODELS, interleaved with the peers named by --vs; ratios below 1 mean that fuseline is faster.

    Several of them, a folder or a quoted glob are a table with rows for each model, measured one after the other; on
    the workers of a cluster at once, each on cores of its own.
    """
    peers = [name.strip() for name in vs.split(",") if name.strip()]
    counts = parse_threads(threads_text) if threads_text else [None]
    if not is_one_file(models) or scheduler is not None:
        _several(models, (peers, counts, per_dispatch, rounds), inputs, options, Workers(scheduler, kind), as_json)
        return
    (model,) = models
    measured = measured_model(model, options, peers, counts, per_dispatch, rounds, inputs)
    if as_json:
        emit("bench", {"model": str(model), **measured})
        return
    say(result_table(measured["results"], peers))
    if per_dispatch:
        say("")
        say(_dispatch_table(measured["dispatches"]))


def _several(
    models: tuple[Path, ...],
    asked: tuple[list[str], Sequence[int | None], bool, int],
    inputs: tuple[str, ...],
    options: Mapping[str, Any],
    workers: Workers,
    as_json: bool,
) -> None:
    """Rows for several models; on workers each holds as many cores as it has threads, here by default as many as this
    machine has."""
    if inputs:
        raise FuselineError("E0501", "--input is for one model, measured here", hint="leave it out")
    peers, counts, per_dispatch, rounds = asked
    if workers.scheduler is not None:
        counts = [count or len(allowed_processors()) for count in counts]
        workers = workers._replace(hold=max(counts))
    rows = bench_many(models, options, measured_model, (peers, counts, per_dispatch, rounds), workers)
    show_many(rows, _heads(peers), partial(_cells, peers=peers), as_json=as_json)


def measured_model(
    model: Path,
    options: Mapping[str, Any],
    peers: list[str],
    counts: Sequence[int | None],
    per_dispatch: bool,
    rounds: int,
    inputs: tuple[str, ...] = (),
) -> dict[str, Any]:
    """`results` for each count of threads, and `dispatches` for the last one; called on workers, too."""
    if peers:
        require_onnx(model, "--vs")
    prepared = [_prepared(model, count, inputs, options) for count in counts]
    results = [measure_program(program, model, peers, feeds, rounds) for program, feeds in prepared]
    return {"results": results, "dispatches": _dispatch_times(*prepared[-1]) if per_dispatch else []}


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
    table = Table(*_heads(peers), box=None, header_style="bold", pad_edge=False)
    for column in table.columns:
        column.justify = "right"
    for result in results:
        table.add_row(*_cells(result, peers))
    return table


def _heads(peers: list[str]) -> list[str]:
    return ["threads", OURS, *(word for name in peers for word in (name, "ratio"))]


def _cells(result: Mapping[str, Any], peers: list[str]) -> list[str]:
    medians = result["median_seconds"]
    cells = [cell for name in peers for cell in (seconds(medians[name]), _ratio_text(result["ratios"][name]))]
    return [str(result["threads"]), seconds(medians[OURS]), *cells]


def _ratio_text(ratio: Mapping[str, float]) -> str:
    return f"{ratio['value']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]"


def _dispatch_times(program: CompiledModel, feeds: Feeds) -> list[dict[str, Any]]:
    session = native_session(program, "--per-dispatch")
    artifact = program_run(session.artifact, feeds, program.threads)
    times = dispatch_seconds(artifact, feeds, program.threads)
    # what is on record is the program that ordinary sizes run
    recorded = program.record.dispatches if artifact is not session.artifact.fallback else ()
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
