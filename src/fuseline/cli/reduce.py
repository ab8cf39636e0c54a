"""`fuseline reduce`: the smallest model that still shows a difference, with a test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fuseline.cli.bisect import AGAINST, INPUTS, SEED, TOLERANCE_OPTION
from fuseline.cli.console import emit, note, progress, say
from fuseline.cli.models import require_onnx
from fuseline.cli.options import compile_options, given_options, json_option, model_argument, threads_option
from fuseline.cli.references import RUNTIME, feeds_without_code, options_of, require_file
from fuseline.errors import FuselineError

if TYPE_CHECKING:
    from fuseline.verify.reduce.candidate import Candidate
    from fuseline.verify.reduce.judge import Judge

_TOLD = ("fusion", "numerics", "target", "threads", "dedup", "without_rules", "fuel")
"""Options that the test repeats."""


@click.command()
@model_argument
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The reduced model; its feeds (.npz) and a test (test_NAME.py) lie beside it.",
)
@AGAINST
@click.option("--code", default="", metavar="CODE", help="Compiling must end with this error (E0901), instead.")
@click.option(
    "--seconds", type=click.FloatRange(min=1), default=600.0, show_default=True, help="How long to look at the most."
)
@INPUTS
@SEED
@TOLERANCE_OPTION
@compile_options
@threads_option
@json_option
def reduce(
    model: Path,
    output: Path,
    against: str,
    code: str,
    seconds: float,
    inputs: tuple[str, ...],
    seed: int,
    tolerance: float | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Write the smallest model found that still differs as MODEL does: fewer nodes, smaller sizes, plainer attributes
    and weights.

    Each candidate passes onnx.checker and is compiled, run and judged in a process of its own. What was found so far is
    on disk at any time: Ctrl-C keeps the smallest. A command as --against is given the path of a model.
    """
    from fuseline.verify.compare import TOLERANCE
    from fuseline.verify.reduce.judge import Judge
    from fuseline.verify.reduce.search import Reduction
    from fuseline.verify.reduce.written import paths_of, write_reduced

    require_onnx(model, "reduce")
    require_file(model)
    allowed = TOLERANCE if tolerance is None else tolerance
    made = options_of(model, options, None)
    judge: Judge = Judge(made, against, allowed, _by_runtime if against == RUNTIME and not code else None, code)
    whole = _whole(model, inputs, seed, made)
    latest: list[tuple[Candidate, str]] = []
    repeated = {name: options[name] for name in given_options(options) if name in _TOLD}

    def keep(candidate: Candidate, words: str) -> None:
        write_reduced(candidate, output, words, "" if code else against, allowed, repeated)
        latest[:] = [(candidate, words)]

    with progress(f"reducing {model.name}") as report:
        search = Reduction(made, judge.shows, keep, lambda what, tried: report(f"{what}, {tried} tried", 0, 0), seconds)
        try:
            search.run(whole)
        except KeyboardInterrupt:
            if not latest:
                raise
            note("interrupted: the smallest model so far is kept")
    _show(model, whole, *latest[0], [str(path) for path in paths_of(output)], search.tried, as_json)


def _whole(model: Path, inputs: tuple[str, ...], seed: int, options: Any) -> Candidate:
    import onnx

    from fuseline.interop import onnx_host
    from fuseline.verify.reduce.candidate import Candidate

    _refuse_large(model)
    onnx_host.install()
    return Candidate(onnx.load(model), feeds_without_code(model, options, inputs, seed))


def _refuse_large(model: Path) -> None:
    """Candidates are models in one message of protobuf, whole in memory. Raises E0501 for one that does not fit."""
    import onnx

    from fuseline.exports.onnx.source import MOST_BYTES
    from fuseline.interop.external_bytes import external_bytes

    size = model.stat().st_size
    if size <= MOST_BYTES:
        size += external_bytes(onnx.load(model, load_external_data=False))
    if size > MOST_BYTES:
        message = f"reduce holds models in one file, and this one takes {size:,} of at most {MOST_BYTES:,} bytes"
        hint = "`fuseline bisect` does not; or cut a part out first (onnx.utils.extract_model)"
        raise FuselineError("E0501", message, node=str(model), hint=hint)


def _by_runtime(model: Any, feeds: Mapping[str, Any]) -> Mapping[str, Any]:
    """The outputs of a model in onnxruntime, on one thread. Raises what that raises."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def _show(
    model: Path, whole: Candidate, found: Candidate, words: str, files: list[str], tried: int, as_json: bool
) -> None:
    if as_json:
        sizes = {
            name: {"nodes": one.size[0], "elements": one.size[1], "bytes": one.size[2]}
            for name, one in (("before", whole), ("after", found))
        }
        emit("reduce", {"model": str(model), "shown": words, **sizes, "tried": tried, "files": files})
        return
    nodes = f"{len(whole.nodes)} -> {len(found.nodes)} nodes"
    say([words, f"{nodes}, {whole.elements:,} -> {found.elements:,} elements, {tried} candidates tried", *files])
