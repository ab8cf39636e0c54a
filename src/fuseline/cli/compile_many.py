"""`fuseline compile` of several models: an artifact for each, in a folder or beside its model; one that fails is a row
with its error. On the workers of a cluster where one is given: artifacts come back and are written and signed here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import click

from fuseline.cli.console import emit, note, say
from fuseline.cli.model_files import is_one_file, model_files
from fuseline.cli.model_rows import Outcome, Workers, outcomes
from fuseline.cli.models import compiled, is_artifact, require_model
from fuseline.cli.output import is_stdout, require_folder
from fuseline.errors import FuselineError
from fuseline.report.model_table import ModelRow, table_of
from fuseline.report.quantities import plural
from fuseline.report.records import CompileRecord
from fuseline.report.statistics import statistics_json
from fuseline.runtime.files import write_bytes


class Program(NamedTuple):
    """A compiled model as its file would be, and how such files end."""

    content: bytes
    suffix: str
    from_cache: bool
    record: CompileRecord


@dataclass(frozen=True, slots=True)
class Written:
    """A model and its artifact at `output`, or the coded `error` in place of one."""

    model: str
    output: Path | None = None
    bytes: int = 0
    program: Program | None = None
    error: dict[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """As one model of the JSON document."""
        if self.program is None:
            return {"model": self.model, "error": self.error}
        record = self.program.record
        made = {"output": str(self.output), "bytes": self.bytes, "from_cache": self.program.from_cache}
        return {"model": self.model, **made, "warnings": record.warnings, **statistics_json(record)}

    def line(self) -> str:
        """For people."""
        if self.program is None:
            return f"{self.model}: error {(self.error or {}).get('code', '')}"
        origin = " (from the cache)" if self.program.from_cache else ""
        return f"{self.output}: {plural(len(self.program.record.dispatches), 'dispatch')}{origin}"


def compile_many(
    models: Sequence[Path],
    output: Path | None,
    options: Mapping[str, Any],
    *,
    key: Path | None = None,
    with_stats: bool = False,
    as_json: bool = False,
    workers: Workers,
) -> None:
    """Compile what is behind `models`. `output`: the folder (of one model the file); None for beside each.

    Exit code 1 where one fails. Raises FuselineError: E0101 for a folder without models, E0501 for models whose
    artifacts would have one name, E0502 for a folder that cannot be made.
    """
    files = _models_of(models)
    alone = is_one_file(models)
    if is_stdout(output):
        raise FuselineError("E0501", "several artifacts cannot go to standard output", hint="give a folder: -o DIR")
    if output is not None and not alone:
        _require_own_names(files)
        require_folder(output)
    rows: list[Written] = []
    for outcome in outcomes(files, options, compiled_program, "compile", workers):
        rows.append(_written(outcome, output, alone, key))
        if not as_json:
            say(rows[-1].line())
    if as_json:
        emit("compile", {"models": [row.document() for row in rows]})
    elif with_stats:
        say(table_of([ModelRow(model=r.model, record=r.program and r.program.record, error=r.error) for r in rows]))
    if any(row.error is not None for row in rows):
        raise click.exceptions.Exit(1)


def compiled_program(path: Path, options: Mapping[str, Any]) -> Program:
    """The program of a model, as a worker sends it."""
    require_model(path, "compile")
    program = compiled(path, options)
    return Program(program.to_bytes(), program.suffix, program.from_cache, program.record)


def _models_of(models: Sequence[Path]) -> dict[str, Path]:
    """The files by name; artifacts that lie in a folder with models are what an earlier compile left there."""
    found = model_files(models)
    kept = {name: path for name, path in found.items() if not is_artifact(path) or path in models}
    if not kept:
        raise FuselineError("E0101", "only artifacts are there", node=str(models[0]), hint="give models")
    return kept


def _require_own_names(files: Mapping[str, Path]) -> None:
    counts = Counter(str(Path(name).with_suffix("")) for name in files)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        message = f"{counts[twice[0]]} models would have the artifact {twice[0]}"
        raise FuselineError("E0501", message, hint="compile them one by one, or leave -o out and rename one")


def _written(outcome: Outcome[Program], output: Path | None, alone: bool, key: Path | None) -> Written:
    program = outcome.result
    if program is None:
        error = outcome.error
        return Written(outcome.name, error=None if error is None else error.to_json())
    if output is None:
        target = outcome.path.with_suffix(program.suffix)
    else:
        target = output if alone else (output / outcome.name).with_suffix(program.suffix)
    try:
        _write(target, program.content, key)
    except FuselineError as error:
        note(f"  error {error.code}: {error.message}")
        return Written(outcome.name, error=error.to_json())
    return Written(outcome.name, target, target.stat().st_size, program._replace(content=b""))


def _write(target: Path, content: bytes, key: Path | None) -> None:
    """The artifact, signed here: a private key goes nowhere."""
    if key is None:
        write_bytes(target, content)
        return
    from fuseline.runtime.artifact import read_artifact

    with TemporaryDirectory(prefix="fuseline-sign-") as folder:
        unsigned = Path(folder) / target.name
        unsigned.write_bytes(content)
        read_artifact(unsigned).save(target, sign=key)
