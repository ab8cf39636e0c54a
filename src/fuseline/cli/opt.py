"""`fuseline opt`: run passes on MLIR text, like mlir-opt."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fuseline.cli.console import emit
from fuseline.cli.ir_printing import ir_printer, print_ir_options
from fuseline.cli.options import json_option, without_rule_option
from fuseline.cli.output import STDOUT, deliver, is_stdout, note_names_only, refuse_two_documents
from fuseline.cli.rule_listing import rules_listing_option, show_rules
from fuseline.errors import FuselineError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from fuseline.ir.context import CompilerContext
    from fuseline.ir.printed_after import PrintedAfter


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


def run_passes(
    text: str,
    pipeline: str,
    *,
    source: str = "<input>",
    split: bool = False,
    verify_each: bool = False,
    locations: bool = False,
    generic: bool = False,
    rules: Sequence[Path] = (),
    print_after: tuple[str | None, Path | None] = (None, None),
    without_rules: Sequence[str] = (),
    target: str | None = None,
    folder: Path | None = None,
    output: Path | None = None,
    notice: Callable[[int, int], object] | None = None,
) -> str:
    """`text` after the passes (or whole phases) of `pipeline`; modules of a split file are kept apart by `// -----`.
    `print_after`: the values of `--print-ir-after` and `--print-ir-to`. Passes that ask about the machine are told of
    `target`. `folder`: where the weights lie that the text names a file of (default: the current one). `output`: a file
    for the result, its weights beside it; without one, `notice` is told how many weights are names only, and their
    bytes.

    Raises FuselineError: E0501 for a target or the name of a rule, E0301/E0302 for text that is no valid IR,
    E0303/E0304 for a wrong pipeline, E0308/E0309 for weights and texts that are not as they were emitted, E0502 for an
    output that cannot be written, and whatever a pass refuses.
    """
    from fuseline.emitted_stage import stage_after, stage_said, stage_text, write_stage_files
    from fuseline.ir.context import new_context
    from fuseline.ir.stage_file import StageFile, read_stage
    from fuseline.ir.text import EMBED_LIMIT_BYTES, split_input
    from fuseline.passes.fusion.user_rules import require_rules, with_user_rules
    from fuseline.passes.registry import parse_passes
    from fuseline.pipeline import PASS_PHASES
    from fuseline.source_program import set_target
    from fuseline.targets import create_target

    machine = create_target(target) if target is not None else None
    require_rules(without_rules, [*rules, *map(Path, machine.description.rules.files if machine is not None else ())])
    passes = [with_user_rules(step, rules, without_rules) for step in parse_passes(pipeline, PASS_PHASES)]
    run = {step.name for step in passes}
    whole = {phase: names for phase, names in PASS_PHASES.items() if run.issuperset(names)}
    printer = ir_printer(*print_after, run | whole.keys(), whole)
    done: list[StageFile] = []
    notes: list[str] = []
    for number, (line, module_text) in enumerate(split_input(text) if split else [(1, text)]):
        ctx = new_context()
        if machine is not None:
            set_target(ctx, machine)
        module = read_stage(module_text, ctx, source, folder or Path(), first_line=line)
        known, before = len(ctx.records.notes), stage_said(module, ctx)
        _run(module, ctx, passes, printer, verify_each=verify_each)
        notes.append("".join(f"// {note}\n" for note in ctx.records.notes[known:]))
        said = ctx.emitted
        if said is not None:
            stage = stage_after(before, [step.name for step in passes], PASS_PHASES)
            said = said._replace(stage=stage)
            if machine is not None:
                said = said._replace(target=ctx.target.name, numerics=ctx.target.numerics)
        full = locations or (output is not None and said is not None)
        done.append(StageFile(module, ctx, output or Path(), said, full, generic, number))
        if output is not None and ctx.taken_equal:
            done[-1].literal = _literal(module_text, ctx, passes, source, folder or Path())
    if output is not None:
        return write_stage_files(output, done, lambda texts: _joined(notes, texts))
    return _joined(notes, [stage_text(one, EMBED_LIMIT_BYTES, notice) for one in done])


def _literal(
    text: str, ctx: CompilerContext, passes: Sequence[ModulePass], source: str, folder: Path
) -> tuple[ModuleOp, CompilerContext] | None:
    """The program beside a text, for sizes that broadcast as they are, after the same passes; None for none."""
    from fuseline.ir.context import new_context
    from fuseline.ir.stage_file import read_stage

    other = new_context()
    other.literal_broadcasts = True
    other.target, other.legal, other.takes_op = ctx.target, ctx.legal, ctx.takes_op
    other.sharing_price = ctx.sharing_price
    try:
        module = read_stage(text, other, source, folder)
    except FuselineError as error:
        if error.code == "E0305":
            return None
        raise
    _run(module, other, passes, None, verify_each=False)
    return module, other


def _joined(notes: Sequence[str], texts: Sequence[str]) -> str:
    return "\n// -----\n\n".join(map("".join, zip(notes, texts, strict=True)))


def _run(
    module: ModuleOp,
    ctx: CompilerContext,
    passes: Sequence[ModulePass],
    printer: PrintedAfter | None,
    *,
    verify_each: bool,
) -> None:
    """The passes one after the other, with what is asked for between them."""
    from fuseline.analysis.idiom_watch import IdiomWatch
    from fuseline.dispatch.verify_loops import verify_loops
    from fuseline.ir.printed_after import START
    from fuseline.ir.text import verify_module

    watch = IdiomWatch(module, ctx) if verify_each else None
    if printer is not None:
        printer(START, module, ctx)
    for step in passes:
        step.apply(ctx, module)
        if printer is not None:
            printer(step.name, module, ctx)
        if watch is not None:
            verify_module(module)
            verify_loops(module, ctx)
            watch.check(module)
    verify_module(module)


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
    sys.stdout.write("".join(f"{info.name:<{width}}  [{info.group}] {info.summary}\n" for info in infos))
