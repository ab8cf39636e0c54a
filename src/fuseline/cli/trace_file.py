"""`--trace FILE` of `run` and `compile`: the time line beside what the command does."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fuseline.cli.console import note
from fuseline.cli.native import native_session
from fuseline.cli.output import deliver, is_stdout
from fuseline.errors import FuselineError

if TYPE_CHECKING:
    from fuseline.compiled_model import CompiledModel

trace_option = click.option(
    "--trace",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a time line of it, too (JSON that ui.perfetto.dev opens).",
)


trace_runs_option = click.option(
    "--trace-runs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Runs behind each other on the time line; of many short ones some are recorded.",
)


def write_run_trace(path: Path, program: CompiledModel, feeds: Mapping[str, Any], runs: int = 1) -> None:
    """Write the time line of runs of its own. Where one fails, the line up to there is written before the error is
    raised. Raises E0501 for a program without native code, E0502 for a place that cannot be written."""
    from fuseline.verify.run_trace import FailedRunError, run_trace

    _refuse_stdout(path)
    session = native_session(program, "--trace")
    try:
        deliver(path, run_trace(session, program.record, feeds, runs))
    except FailedRunError as failed:
        deliver(path, failed.trace)
        note(f"time line up to the failure: {path}")
        raise (failed.__cause__ or failed) from None


@contextmanager
def compile_trace_to(path: Path | None, options: dict[str, Any], title: str) -> Generator[None]:
    """Write the time line of the compiles in the block to `path`; they take nothing from the cache. A compile that
    fails leaves its line as well."""
    if path is None:
        yield
        return
    from fuseline.timeline import recording
    from fuseline.verify.compile_trace import compile_trace

    _refuse_stdout(path)
    options["cache"] = False
    with recording() as timeline:
        try:
            yield
        finally:
            deliver(path, compile_trace(title, timeline.spans))


def _refuse_stdout(path: Path) -> None:
    if is_stdout(path):
        raise FuselineError("E0501", "--trace writes a file", hint="give a name: --trace t.json")
