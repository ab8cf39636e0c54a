"""The same work on several models, each to a row of a table; one that fails is a row with its error. One after the
other here, or at once on the workers of a cluster (`--scheduler`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from fuseline.border import coded
from fuseline.cli.console import captured, note
from fuseline.cli.model_files import model_files
from fuseline.cli.models import is_artifact, record_of, refuse_compile_options
from fuseline.errors import FuselineError
from fuseline.report.model_table import ModelRow

R = TypeVar("R")


class Workers(NamedTuple):
    """Where work is done: `scheduler`, None for here; `kind` of machine, or a part of its name; `hold`: cores that each
    piece of work holds for itself there, for what is timed."""

    scheduler: str | None = None
    kind: str | None = None
    hold: int = 0


HERE = Workers()


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """Of the model called `name`, which lies at `path`: the result, or the error."""

    name: str
    path: Path
    result: R | None = None
    error: FuselineError | None = None


def model_rows(paths: Sequence[Path], options: Mapping[str, Any], workers: Workers = HERE) -> Iterator[ModelRow]:
    """A row for each model behind `paths`, as it is compiled; a line about each goes to standard error first. Raises
    E0101 for a folder without models, and what reaching `workers` raises."""
    for row in outcomes(model_files(paths), options, record_of, "stats", workers):
        yield ModelRow(model=row.name, record=row.result, error=None if row.error is None else row.error.to_json())


def outcomes(
    files: Mapping[str, Path],
    options: Mapping[str, Any],
    work: Callable[..., R],
    phase: str,
    workers: Workers = HERE,
    arguments: tuple[Any, ...] = (),
) -> Iterator[Outcome[R]]:
    """`work(path, options, *arguments)` for each of `files`, in their order, with lines about progress and failures on
    standard error.

    Args:
        work: a function of a module, which workers import; its result can be pickled. phase: names what is done in
        errors that nobody foresaw.

    Raises FuselineError before there is work under way on a cluster: E1101, E1102.
    """
    found = (
        _here(files, options, work, phase, arguments)
        if workers.scheduler is None
        else _on_workers(files, options, work, workers, arguments)
    )
    for outcome in found:
        if outcome.error is not None:
            where = "" if workers.scheduler is None else f"{outcome.name}: "
            note(f"  {where}error {outcome.error.code}: {outcome.error.message}")
        yield outcome


def _here(
    files: Mapping[str, Path],
    options: Mapping[str, Any],
    work: Callable[..., R],
    phase: str,
    arguments: tuple[Any, ...],
) -> Iterator[Outcome[R]]:
    for number, (name, path) in enumerate(files.items(), 1):
        note(f"[{number}/{len(files)}] {name}")
        try:
            yield Outcome(name, path, work(path, options, *arguments))
        except Exception as problem:  # noqa: BLE001 - whatever ends one model, the others are worked on
            yield Outcome(name, path, error=coded(problem, phase))


# on a cluster ---------------------------------------------------------------------------------------------------------


def _on_workers(
    files: Mapping[str, Path],
    options: Mapping[str, Any],
    work: Callable[..., R],
    workers: Workers,
    arguments: tuple[Any, ...],
) -> Iterator[Outcome[R]]:
    from fuseline.cluster.model_work import Answer, on_workers

    def finished(count: int, total: int, answer: Answer[Any]) -> None:
        note(f"[{count}/{total}] {answer.name}" + (f" on {answer.host}" if answer.host else ""))

    refused = {name: error for name, path in files.items() if (error := _refusal(path, options)) is not None}
    given = {name: path for name, path in files.items() if name not in refused}
    answers = on_workers(
        workers.scheduler or "",
        given,
        options_for_workers(options),
        quiet_work,
        (work, arguments),
        hold=workers.hold,
        kind=workers.kind,
        notice=note,
        finished=finished,
    )
    for name, path in files.items():
        if name in refused:
            yield Outcome(name, path, error=refused[name])
            continue
        answer = next(answers)
        result, lines = answer.result if answer.result is not None else (None, ())
        for line in lines:
            note(line)
        yield Outcome(name, path, result, answer.error)
    next(answers, None)  # the end of the work there


def quiet_work(
    path: Path, options: Mapping[str, Any], work: Callable[..., R], arguments: tuple[Any, ...]
) -> tuple[R, list[str]]:
    """On a worker: the result, and the lines that would have gone to standard error."""
    with captured() as lines:
        result = work(path, options, *arguments)
    return result, lines


def options_for_workers(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as other machines are to understand them: as many threads as here, unless a plan may say how many;
    what has to be a function of this process left out."""
    from fuseline.runtime.processors import allowed_processors

    plain = {name: value for name, value in options.items() if not callable(value)}
    if plain.get("threads") is None and plain.get("plan") is None:
        plain["threads"] = len(allowed_processors())
    return plain


def _refusal(path: Path, options: Mapping[str, Any]) -> FuselineError | None:
    """What only this process can refuse: options that the command line gives with an artifact."""
    if not is_artifact(path):
        return None
    try:
        refuse_compile_options(options)
    except FuselineError as error:
        return error
    return None
