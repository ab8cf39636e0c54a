"""One model, checked: its dispatches, its kernels' accesses, its runs against each other, its outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError, UnequalSizesError
from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext
from fuseline.report.check_results import WRONG, DispatchCheck, Finding, ModelCheck, OutputCheck
from fuseline.runtime import Session
from fuseline.runtime.branches import Taken, noting_branches
from fuseline.verify.check.dispatches import DispatchChecks, Tell
from fuseline.verify.check.original import Original
from fuseline.verify.check.programs import CheckedProgram, checked_programs
from fuseline.verify.check.whole import Exactly, Outputs, check_outputs, same_values

_FLOAT64 = "the interpreter in float64"

_LENGTH = 16

MakeFeeds = Callable[[Session, Mapping[str, int], int], dict[str, Any]]
"""Feeds for a program: some sizes are given by name, others chosen; the seed tells random numbers apart."""


@dataclass(frozen=True)
class Asked:
    """What a check takes: how feeds are made; `reference`, another program and its name (None: the interpreter in
    float64 alone), `same_model` whether that is the model's meaning too, so that noise may explain a difference; the
    largest difference of outputs as a part of their largest magnitude; whom to tell."""

    feeds: MakeFeeds
    reference: tuple[str, Callable[[dict[str, Any]], Outputs]] | None
    tolerance: float
    same_model: bool = True
    tell: Callable[[str, int, int], object] = lambda phase, done, total: None


def check_model(name: str, source: Any, options: CompileOptions, asked: Asked) -> ModelCheck:
    """All checks of a model. Raises what reading, compiling and feeding raise; what is found wrong is in the answer."""
    programs = checked_programs(source, options)
    check = ModelCheck(model=name)
    with noting_branches() as taken:
        for program in programs:
            _check_program(check, program, programs[0], taken, source, options, asked)
    _find(check)
    return check


def _check_program(
    check: ModelCheck,
    program: CheckedProgram,
    main: CheckedProgram,
    taken: Sequence[Taken],
    source: Any,
    options: CompileOptions,
    asked: Asked,
) -> None:
    session = Session(program.artifact, threads=options.threads)
    feeds = _own_feeds(check, program, taken) or _feeds_of(check, program, main, session, asked)
    if feeds is None:
        return
    checks = DispatchChecks(program, _named(asked, program.role)).run(feeds)
    check.dispatches += checks.rows
    check.not_finite += [checks.first_not_finite] if checks.first_not_finite is not None else []
    outputs = session.run(feeds)
    _compare_runs(
        check, program, outputs, [("its steps one by one", checks.outputs), ("a second run", session.run(feeds))]
    )
    if program.role != "branch":
        _compare_outputs(check, feeds, outputs, asked, _exactly(program, source, options, feeds, asked))
    if program.role == "main":
        _note_constant_outputs(check, session, feeds, outputs, asked)


def _named(asked: Asked, role: str) -> Tell:
    return lambda done, total: asked.tell(f"dispatches of the {role} program", done, total)


def _own_feeds(check: ModelCheck, program: CheckedProgram, taken: Sequence[Taken]) -> dict[str, Any] | None:
    """What a branch was fed by the run of the program above it; None, and a note, where that did not take it."""
    if program.role != "branch":
        return None
    mine = program.artifact
    for program_, feeds in taken:
        if program_.records == mine.records and bytes(program_.code) == bytes(mine.code):
            return feeds
    check.notes.append("a branch that the run did not take was checked on generated values")
    return None


def _feeds_of(
    check: ModelCheck, program: CheckedProgram, main: CheckedProgram, session: Session, asked: Asked
) -> dict[str, Any] | None:
    """Feeds that this program takes; None, and a note, where there are none."""
    sizes = _repeated_sizes(main.lowering.ctx) if program.role == "fallback" else {}
    try:
        feeds = asked.feeds(session, sizes, 0)
        try:
            session.run(feeds)
        except UnequalSizesError:  # sizes of 1 that repeat are for the fallback
            feeds = asked.feeds(session, _equal_sizes(program.lowering.ctx), 0)
            session.run(feeds)
    except FuselineError as error:
        if program.role == "main":
            raise
        check.notes.append(
            f"the {program.role} program was not checked: no feeds for it ({error.code}: {error.message})"
        )
        return None
    return feeds


def _repeated_sizes(ctx: CompilerContext) -> dict[str, int]:
    """A size of 1 for a symbol that the first program takes to be equal to another: what a fallback is for."""
    pairs = [sorted(one.name for one in d.symbols(left) | d.symbols(right)) for left, right in ctx.taken_equal]
    return {names[0]: 1 for names in pairs if names}


def _equal_sizes(ctx: CompilerContext) -> dict[str, int]:
    """The same size for all symbols that a program takes to be equal."""
    return {one.name: _LENGTH for pair in ctx.taken_equal for size in pair for one in d.symbols(size)}


def _compare_runs(
    check: ModelCheck, program: CheckedProgram, outputs: Outputs, others: Sequence[tuple[str, Outputs]]
) -> None:
    """Runs on the same feeds are the same to the bit, on any number of threads."""
    for what, again in others:
        differing = [name for name, value in outputs.items() if not same_values(value, again.get(name))]
        if differing:
            message = f"the {program.role} program's run and {what} give different bits"
            check.findings.append(Finding(code="E0613", message=message, node=", ".join(differing)))


def _exactly(
    program: CheckedProgram, source: Any, options: CompileOptions, feeds: dict[str, Any], asked: Asked
) -> Exactly:
    """What gives the outputs in float64 and under noise, when it is asked."""

    def exactly() -> tuple[Outputs, list[Outputs]]:
        asked.tell("the model in float64", 0, 0)
        original = Original(source, options, literal=program.role == "fallback")
        return original.run(feeds), original.noisy_runs(feeds)

    return exactly


def _compare_outputs(
    check: ModelCheck, feeds: dict[str, Any], outputs: Outputs, asked: Asked, exactly: Exactly
) -> None:
    name, run = asked.reference or (_FLOAT64, None)
    theirs: Outputs | None = None
    try:
        theirs = run(feeds) if run is not None else None
    except FuselineError as error:
        check.notes.append(f"{name} does not run the model ({error.message}); {_FLOAT64} does")
        name = _FLOAT64
    if theirs is None:
        check.outputs += check_outputs(outputs, _cast(exactly()[0], outputs), name, asked.tolerance, exactly)
    else:
        judge = exactly if asked.same_model else None
        check.outputs += check_outputs(outputs, theirs, name, asked.tolerance, judge)


def _cast(exact: Outputs, ours: Outputs) -> dict[str, Any]:
    """Outputs in float64 in the types of ours."""
    return {
        name: value.astype(ours[name].dtype) if hasattr(value, "astype") and hasattr(ours.get(name), "dtype") else value
        for name, value in exact.items()
    }


def _note_constant_outputs(
    check: ModelCheck, session: Session, feeds: dict[str, Any], outputs: Outputs, asked: Asked
) -> None:
    """Equal outputs prove little where no input changes them."""
    sizes = {
        extent: size
        for spec in session.inputs
        for extent, size in zip(map(str, spec.shape), getattr(feeds[spec.name], "shape", ()), strict=False)
    }
    try:
        other = session.run(asked.feeds(session, sizes, 1))
    except FuselineError:
        return
    if outputs and all(same_values(value, other[name]) for name, value in outputs.items()):
        check.notes.append("no output depends on the inputs: that they agree says little")


def _find(check: ModelCheck) -> None:
    """What of the rows is a finding, worst first."""
    check.findings[:0] = [*map(_wrong_dispatch, _wrong(check)), *_wrong_outputs(check.outputs), *_left(check)]


def _wrong(check: ModelCheck) -> list[DispatchCheck]:
    return [row for row in check.worst_first if row.status == WRONG]


def _wrong_dispatch(row: DispatchCheck) -> Finding:
    place = f"{row.dispatch} of the {row.program} program"
    made = f" (kernel family {row.family})" if row.family else ""
    return Finding(code="E0611", message=f"{place}{made}: {row.detail}", node=", ".join(row.nodes))


def _wrong_outputs(rows: Sequence[OutputCheck]) -> list[Finding]:
    return [
        Finding(
            code="E0601",
            message=f"off by {row.error:.3g} of the largest magnitude {row.magnitude:.4g} against {row.reference}"
            + (f"; {row.detail}" if row.detail else ""),
            node=row.output,
        )
        for row in rows
        if row.status == WRONG
    ]


def _left(check: ModelCheck) -> list[Finding]:
    return [
        Finding(
            code="E0612",
            message=f"{row.dispatch} ({row.family}) left a buffer: {row.unproved[0]}",
            node=", ".join(row.nodes),
        )
        for row in check.dispatches
        if row.left
    ]
