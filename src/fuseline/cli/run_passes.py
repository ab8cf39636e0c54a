"""Passes on MLIR text, module by module: what `fuseline opt` does between reading and printing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fuseline.cli.ir_printing import ir_printer
from fuseline.errors import FuselineError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from fuseline.ir.context import CompilerContext, Emitted
    from fuseline.ir.printed_after import PrintedAfter
    from fuseline.ir.stage_file import StageFile
    from fuseline.targets.target import Target


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
    from fuseline.emitted_stage import stage_text, write_stage_files
    from fuseline.ir.text import EMBED_LIMIT_BYTES, split_input
    from fuseline.targets import create_target

    machine = create_target(target) if target is not None else None
    passes = _passes(pipeline, rules, without_rules, machine)
    printer = _printer(passes, print_after)
    run = _Run(passes, printer, machine, source, folder or Path(), output, verify_each, locations, generic)
    parts = split_input(text) if split else [(1, text)]
    done = [run.module(number, line, part) for number, (line, part) in enumerate(parts)]
    notes, files = [said for said, _ in done], [file for _, file in done]
    if output is not None:
        return write_stage_files(output, files, lambda texts: _joined(notes, texts))
    return _joined(notes, [stage_text(one, EMBED_LIMIT_BYTES, notice) for one in files])


def _passes(
    pipeline: str, rules: Sequence[Path], without_rules: Sequence[str], machine: Target | None
) -> list[ModulePass]:
    """The passes of `pipeline` with the rules of the user and of the machine."""
    from fuseline.passes.fusion.user_rules import require_rules, with_user_rules
    from fuseline.passes.registry import parse_passes
    from fuseline.pipeline import PASS_PHASES

    require_rules(without_rules, [*rules, *map(Path, machine.description.rules.files if machine is not None else ())])
    return [with_user_rules(step, rules, without_rules) for step in parse_passes(pipeline, PASS_PHASES)]


def _printer(passes: Sequence[ModulePass], print_after: tuple[str | None, Path | None]) -> PrintedAfter | None:
    """What prints IR between passes: behind one by its name, behind a phase that is run as a whole by that of the
    phase."""
    from fuseline.pipeline import PASS_PHASES

    run = {step.name for step in passes}
    whole = {phase: names for phase, names in PASS_PHASES.items() if run.issuperset(names)}
    return ir_printer(*print_after, run | whole.keys(), whole)


@dataclass(frozen=True)
class _Run:
    """What is done with each module of a text."""

    passes: Sequence[ModulePass]
    printer: PrintedAfter | None
    machine: Target | None
    source: str
    folder: Path
    output: Path | None
    verify_each: bool
    locations: bool
    generic: bool

    def module(self, number: int, line: int, text: str) -> tuple[str, StageFile]:
        """The module that starts at `line`, after the passes, and the notes on it as comments."""
        from fuseline.emitted_stage import stage_said
        from fuseline.ir.context import new_context
        from fuseline.ir.stage_file import StageFile, read_stage
        from fuseline.source_program import set_target

        ctx = new_context()
        if self.machine is not None:
            set_target(ctx, self.machine)
        module = read_stage(text, ctx, self.source, self.folder, first_line=line)
        known, before = len(ctx.records.notes), stage_said(module, ctx)
        apply_passes(module, ctx, self.passes, self.printer, verify_each=self.verify_each)
        said = self._said(before, ctx)
        full = self.locations or (self.output is not None and said is not None)
        file = StageFile(module, ctx, self.output or Path(), said, full, self.generic, number)
        if self.output is not None and ctx.taken_equal:
            file.literal = self._literal(text, ctx)
        return "".join(f"// {note}\n" for note in ctx.records.notes[known:]), file

    def _said(self, before: str, ctx: CompilerContext) -> Emitted | None:
        """What the text says of the stage that it is; None where it is none."""
        from fuseline.emitted_stage import stage_after
        from fuseline.pipeline import PASS_PHASES

        if ctx.emitted is None:
            return None
        stage = stage_after(before, [step.name for step in self.passes], PASS_PHASES)
        said = ctx.emitted._replace(stage=stage)
        if self.machine is None:
            return said
        return said._replace(target=ctx.target.name, numerics=ctx.target.numerics)

    def _literal(self, text: str, ctx: CompilerContext) -> tuple[ModuleOp, CompilerContext] | None:
        """The program beside a text, for sizes that broadcast as they are, after the same passes; None for none."""
        from fuseline.ir.context import new_context
        from fuseline.ir.stage_file import read_stage

        other = new_context()
        other.literal_broadcasts = True
        other.target, other.legal, other.takes_op = ctx.target, ctx.legal, ctx.takes_op
        other.sharing_price = ctx.sharing_price
        try:
            module = read_stage(text, other, self.source, self.folder)
        except FuselineError as error:
            if error.code == "E0305":
                return None
            raise
        apply_passes(module, other, self.passes, None, verify_each=False)
        return module, other


def _joined(notes: Sequence[str], texts: Sequence[str]) -> str:
    return "\n// -----\n\n".join(map("".join, zip(notes, texts, strict=True)))


def apply_passes(
    module: ModuleOp,
    ctx: CompilerContext,
    passes: Sequence[ModulePass],
    printer: PrintedAfter | None,
    *,
    verify_each: bool,
) -> None:
    """The passes one after the other, with what is asked for between them."""
    from fuseline.analysis.idiom_watch import IdiomWatch
    from fuseline.dispatch.loops_kept import loops_kept
    from fuseline.dispatch.verify_loops import verify_loops
    from fuseline.ir.printed_after import START
    from fuseline.ir.text import verify_module

    watch = IdiomWatch(module, ctx) if verify_each else None
    if printer is not None:
        printer(START, module, ctx)
    for step in passes:
        with loops_kept(module, ctx):
            step.apply(ctx, module)
        if printer is not None:
            printer(step.name, module, ctx)
        if watch is not None:
            verify_module(module)
            verify_loops(module, ctx)
            watch.check(module)
    verify_module(module)
