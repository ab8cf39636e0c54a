"""`fuseline run`: one run of a model or artifact, with a check against onnxruntime if wanted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from fuseline.cli.console import emit, say, standard_output
from fuseline.cli.models import compiled, require_onnx
from fuseline.cli.options import compile_options, json_option, model_argument, threads_option
from fuseline.cli.output import is_stdout, refuse_two_documents
from fuseline.cli.trace_file import trace_option, trace_runs_option, write_run_trace
from fuseline.report.quantities import seconds
from fuseline.runtime.command import line, summary
from fuseline.runtime.feed_files import Feeds, flat_outputs, output_files, parse_feeds
from fuseline.runtime.files import write_files
from fuseline.verify.model_feeds import complete_feeds, model_hints

if TYPE_CHECKING:
    from fuseline.compiled_model import CompiledModel
    from fuseline.verify.compare import Comparison


@click.command()
@model_argument
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=@FILE.npy",
    help="A feed; NAME=- reads standard input. Others are generated.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder for one .npy per output; - writes the first to standard output.",
)
@click.option("--check", "peer", metavar="PEER", help="Compare with onnxruntime or openvino on the same feeds.")
@click.option(
    "--tolerance",
    type=float,
    default=None,
    help="Largest difference, as a part of the largest magnitude (default 1e-4).",
)
@click.option(
    "--trusted",
    multiple=True,
    metavar="KEY",
    help="Run an artifact only if it is signed by the private key of this public one.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of generated inputs.")
@trace_option
@trace_runs_option
@compile_options
@threads_option
@json_option
def run(
    model: Path,
    inputs: tuple[str, ...],
    output: Path | None,
    peer: str | None,
    tolerance: float | None,
    trusted: tuple[str, ...],
    seed: int,
    trace: Path | None,
    trace_runs: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Run MODEL (an ONNX file or a .fuse artifact) once and show, save or check its outputs."""
    refuse_two_documents(output, as_json)
    if peer is not None:
        require_onnx(model, "--check")
    program = compiled(model, options, trusted=trusted or None)
    given = parse_feeds(inputs, [item.name for item in program.inputs])
    hints = model_hints(model)
    feeds = complete_feeds(program, given, hints, seed)
    if trace is not None:
        write_run_trace(trace, program, feeds, trace_runs)
    outputs = flat_outputs(program.run(feeds))
    comparisons: list[Comparison] = []
    if peer is not None:
        other = complete_feeds(program, {}, hints, seed + 1, like=feeds)
        comparisons = check(model, program, (feeds, outputs), other, peer, tolerance)
    _save(output, outputs)
    if not is_stdout(output):
        _show(model, program, outputs, comparisons, as_json)


def check(
    model: Path, program: CompiledModel, first: tuple[Feeds, Feeds], other: Feeds, peer: str, tolerance: float | None
) -> list[Comparison]:
    """Every output against the peer's; first makes sure that the outputs depend on the inputs. Raises E0601, E0602,
    E0503."""
    from fuseline.interop.peers import load_peer
    from fuseline.verify.compare import TOLERANCE, compare, dependent_outputs, require_agreement

    feeds, outputs = first
    dependent = dependent_outputs(outputs, program.run(other))
    comparisons = compare(outputs, load_peer(peer, model, program.threads).run(feeds), dependent)
    require_agreement(comparisons, TOLERANCE if tolerance is None else tolerance, peer)
    return comparisons


def _save(output: Path | None, outputs: Feeds) -> None:
    if output is None:
        return
    if is_stdout(output):
        with standard_output():
            np.save(sys.stdout.buffer, next(iter(outputs.values())), allow_pickle=False)
            sys.stdout.buffer.flush()
        return
    files = output_files(output, outputs)
    write_files({path: _writer(array) for path, array in files.items()})


def _writer(array: np.ndarray) -> Any:
    return lambda file: np.save(file, array, allow_pickle=False)


def _show(model: Path, program: CompiledModel, outputs: Feeds, comparisons: list[Comparison], as_json: bool) -> None:
    if as_json:
        emit(
            "run",
            {
                "model": str(model),
                "outputs": [summary(name, array) for name, array in outputs.items()],
                "check": _checks(comparisons),
                "layout_seconds": program.layout_seconds,
            },
        )
        return
    if program.layout_seconds:
        say(f"weights laid out in {seconds(program.layout_seconds)}")
    for name, array in outputs.items():
        say(line(name, array))
    for item in comparisons:
        note = "" if item.depends_on_input else "  (does not depend on the input)"
        say(f"check {item.output}: error {item.error:.2e} of the largest magnitude {item.magnitude:.4g}{note}")


def _checks(comparisons: list[Comparison]) -> list[dict[str, Any]]:
    return [
        {"output": c.output, "error": c.error, "magnitude": c.magnitude, "depends_on_input": c.depends_on_input}
        for c in comparisons
    ]
