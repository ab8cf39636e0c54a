"""The door: finds the subcommand by file name, and turns every failure into one coded block and an exit code (0, 1
failed, 2 usage)."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click

import fuseline
from fuseline.border import coded
from fuseline.errors import FuselineError
from fuseline.gc_pause import gc_paused

COMMANDS = {
    "compile": "Compile a model to an artifact, or print a stage of it.",
    "run": "Run a model or an artifact on given or generated inputs.",
    "bench": "Measure against onnxruntime and OpenVINO, interleaved in one run.",
    "stats": "Count dispatches, bytes, fused and missed edges.",
    "explain": "Say where a node went and why two nodes are fused or not.",
    "fuse": "Write a model again, each dispatch an ONNX function.",
    "check": "Check every dispatch, every kernel's accesses and the outputs.",
    "bisect": "Say which pass, rule, decision or kernel makes a program wrong or slow.",
    "whatif": "Say what a change would do, and which missed edges cost most.",
    "reduce": "Write the smallest model that still shows a difference.",
    "diff": "Compare two compiles: statistics, dispatches, decisions.",
    "graph": "Write the dispatches as a graph for Graphviz or Model Explorer.",
    "report": "Write one offline HTML page about a compile.",
    "opt": "Run passes on MLIR text.",
    "targets": "List what can be compiled for, and check a target of one's own.",
    "tune": "Search for the plan, the kernels and the options that run a model fastest here.",
    "machine": "Measure what work costs on this machine, for the compiler's estimates.",
    "cache": "Say what earlier compiles left for later ones, or drop it.",
    "errors": "List the error codes, or explain one.",
}

# What the user typed is at fault, not the work: these exit 2.
USAGE_CODES = frozenset({"E0108", "E0201", "E0202", "E0203", "E0204", "E0206", "E0303", "E0304", "E0501"})
INTERRUPTED = 130
REPORT_BUG = "--report-bug"


class Commands(click.Group):
    """A group that imports a subcommand only when it is used, so that `fuseline run x.fuse` never loads the
    compiler."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The subcommands in the order of a session, not of the alphabet."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of `cli/<name>.py`."""
        if cmd_name not in COMMANDS:
            return None
        with gc_paused():
            found = getattr(import_module(f"fuseline.cli.{cmd_name}"), cmd_name)
        assert isinstance(found, click.Command), f"cli/{cmd_name}.py must define the click command {cmd_name!r}"
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of subcommands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(fuseline.__version__, prog_name="fuseline")
@click.option("--debug", is_flag=True, help="Show the Python traceback of a failure (works after the command, too).")
@click.option(
    REPORT_BUG, metavar="FILE", help="After a failure, write what a bug report needs (works after the command, too)."
)
@click.pass_context
def cli(context: click.Context, debug: bool, report_bug: str | None) -> None:
    """fuseline compiles machine-learning models to fused native dispatches and says why.

    Every command takes --json. Exit codes: 0 fine, 1 the work failed, 2 usage.
    """
    del debug, report_bug  # read from the arguments in `main`, so that they work in any place
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code; no exception leaves."""
    words, report = _without_report([word for word in arguments if word != "--debug"])
    command = next((word for word in words if word in COMMANDS), "fuseline")
    work = partial(cli.main, args=words, prog_name="fuseline", standalone_mode=False)
    after = None if report is None else partial(_report, Path(report), words)
    return guarded(work, command, as_json="--json" in words, debug="--debug" in arguments, after_failure=after)


def _without_report(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """The words without `--report-bug FILE`, and FILE; where it is missing click says so."""
    words: list[str] = []
    report: str | None = None
    rest = iter(arguments)
    for word in rest:
        name, sign, value = word.partition("=")
        following = value if sign else next(rest, None) if name == REPORT_BUG else None
        if name != REPORT_BUG:
            words.append(word)
        elif not following:
            return [REPORT_BUG], None
        else:
            report = following
    return words, report


def _report(path: Path, words: Sequence[str], problem: Exception) -> None:
    from fuseline.cli.bug_report import write_report
    from fuseline.cli.console import note

    same = write_report(path, words, problem)
    note(
        f"report: {path} "
        f"({'shows the failure by itself' if same else 'does not show the failure by itself: say what more it takes'})"
    )


def guarded(
    work: Callable[[], object],
    command: str,
    *,
    as_json: bool,
    debug: bool,
    after_failure: Callable[[Exception], None] | None = None,
) -> int:
    """Does `work` and answers the exit code; every failure becomes one block on standard error, or a document under
    `as_json`.

    `after_failure` is called with what failed once it has been shown.
    """
    try:
        code = work()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as problem:
        return _usage(problem, command, as_json)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        from fuseline.cli.console import forget_standard_output

        forget_standard_output()  # the reader of our pipe has left
        return 1
    except Exception as problem:  # noqa: BLE001 - the one place where everything ends: no traceback ever reaches the user
        return _failed(problem, command, as_json, debug, after_failure)
    # click answers the code of an Exit raised inside a command instead of raising it on.
    return code if isinstance(code, int) else 0


def _usage(problem: click.ClickException, command: str, as_json: bool) -> int:
    from fuseline.cli.console import show_error

    context = problem.ctx if isinstance(problem, click.UsageError) else None
    path = context.command_path if context else "fuseline"
    show_error(
        FuselineError("E0501", problem.format_message(), hint=f"see `{path} --help`"), as_json=as_json, command=command
    )
    return 2


def _failed(
    problem: Exception, command: str, as_json: bool, debug: bool, after: Callable[[Exception], None] | None
) -> int:
    from fuseline.cli.console import show_error

    if debug:
        traceback.print_exception(problem)
    error = coded(problem, command)
    show_error(error, as_json=as_json, command=command)
    if after is not None:
        try:
            after(problem)
        except FuselineError as unwritten:
            show_error(unwritten, as_json=False, command=command)
    return 2 if error.code in USAGE_CODES else 1


def run() -> NoReturn:
    """The console script."""
    sys.exit(main(sys.argv[1:]))
