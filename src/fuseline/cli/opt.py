"""`fuseline opt`: run passes on MLIR text, like mlir-opt."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fuseline.cli.console import emit, say
from fuseline.cli.ir_printing import print_ir_options
from fuseline.cli.options import json_option, without_rule_option
from fuseline.cli.output import STDOUT, deliver, is_stdout, note_names_only, refuse_two_documents
from fuseline.cli.rule_listing import rules_listing_option, show_rules
from fuseline.cli.run_passes import run_passes
from fuseline.errors import FuselineError


@click.command()
@click.argument("file", required=False, default="-", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "-p",
    "--passes",
    "pipeline",
    default="",
    metavar="P{OPT=1},P2",
    help="Passes and phases of the pipeline (cleanup, layout, ...), in order.",
)
@click.option("--split-input-file", is_flag=True, help="Treat what lies between `// -----` lines as separate modules.")
@click.option("--verify-each", is_flag=True, help="Verify after every pass.")
@click.option("--print-locations", is_flag=True, help="Print where each op came from.")
@click.option("--generic", is_flag=True, help="Print MLIR's generic form.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write here instead of to standard output (-).",
)
@click.option(
    "--rules",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    help="A file with fusion rules.",
)
@without_rule_option
@click.option(
    "--target", help="For which machine: cpu, cpu:<isa>, null:<file.toml>, ... (default: none in particular)."
)
@click.option("--list-passes", is_flag=True, help="List the passes and stop.")
@print_ir_options
@rules_listing_option
@json_option
def opt(
    file: Path,
    pipeline: str,
    split_input_file: bool,
    verify_each: bool,
    print_locations: bool,
    generic: bool,
    output: Path | None,
    rules: tuple[Path, ...],
    print_ir_after: str | None,
    print_ir_to: Path | None,
    without_rules: tuple[str, ...],
    target: str | None,
    list_passes: bool,
    list_rules: bool,
    as_json: bool,
) -> None:
    """Run passes on the MLIR text in FILE (`-`: standard input) and print the result."""
    if list_passes:
        _list(as_json)
        return
    if list_rules:
        show_rules(rules, "opt", as_json=as_json)
        return
    refuse_two_documents(output, as_json)
    text = run_passes(
        read_text(file),
        pipeline,
        source=file.name,
        split=split_input_file,
        verify_each=verify_each,
        locations=print_locations,
        generic=generic,
        rules=rules,
        print_after=(print_ir_after, print_ir_to),
        without_rules=without_rules,
        target=target,
        folder=Path() if is_stdout(file) else file.parent,
        output=None if output is None or is_stdout(output) else output,
        notice=note_names_only,
    )
    if as_json:
        emit("opt", {"ir": text})
    elif output is None or is_stdout(output):
        deliver(STDOUT, text)


def read_text(file: Path) -> str:
    """The text of a file or, for `-`, of standard input; raises E0301 when it cannot be read as text."""
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        raise FuselineError("E0301", f"cannot read: {reason}", node=str(file)) from problem


def _list(as_json: bool) -> None:
    from fuseline.passes.registry import list_passes

    infos = list_passes()
    if as_json:
        emit("opt", {"passes": [{"name": info.name, "group": info.group, "summary": info.summary} for info in infos]})
        return
    width = max((len(info.name) for info in infos), default=0)
    say([f"{info.name:<{width}}  [{info.group}] {info.summary}" for info in infos])
