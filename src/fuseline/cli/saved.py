"""What `diff` compares: a model (compiled), an artifact, a plan, or the saved output of `stats --json`, each as a
record; and tables of several."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from fuseline.cli.model_rows import model_rows
from fuseline.cli.models import record_of
from fuseline.errors import FuselineError
from fuseline.report.model_table import ModelRow
from fuseline.report.records import CompileRecord, Decision, DispatchRecord, MemberRecord

PLAN_SUFFIXES = (".toml", ".plan")

_ENVELOPE = (
    "version",
    "command",
    "model",
    "target",
    "threads",
    "graph",
    "warnings",
    "dispatch_table",
    "decisions",
    "quantization_nodes",
)
_SAVE = "save `fuseline stats MODEL --dispatches --decisions --json`"


def any_record(path: Path, options: Mapping[str, Any]) -> CompileRecord:
    """The record behind `path`; of an artifact that does not run here (another format, another machine) as well. Raises
    E0501 for a file that holds no statistics, E0701 for a malformed plan, and what a compile raises."""
    if path.suffix == ".json":
        return _saved_record(path)
    if path.suffix in PLAN_SUFFIXES:
        return _plan_record(path)
    return record_of(path, options)


def any_rows(path: Path, options: Mapping[str, Any]) -> list[ModelRow] | None:
    """The rows of a folder of models or of a saved table; None for what holds one model. Raises E0501 for a file or
    folder that holds none."""
    if path.is_dir():
        return list(model_rows([path], options))
    saved = _read(path) if path.suffix == ".json" else {}
    rows = saved.get("models")
    if rows is None:
        return None
    with _statistics_of(path):
        return [_saved_row(row) for row in rows]


def _saved_row(saved: dict[str, Any]) -> ModelRow:
    error = msgspec.convert(saved.get("error"), dict[str, Any] | None)
    record = record_from(saved) if error is None else None
    return ModelRow(model=str(saved["model"]), record=record, error=error)


def _saved_record(path: Path) -> CompileRecord:
    saved = _read(path)
    if "models" in saved:
        raise FuselineError("E0501", "a table of models against one model", node=str(path), hint="give two tables")
    with _statistics_of(path):
        return record_from(saved)


def record_from(saved: Mapping[str, Any]) -> CompileRecord:
    """The record of one document of `stats --json`. Raises ValueError and the like for what is none."""
    table = msgspec.convert(saved.get("dispatch_table", []), list[DispatchRecord])
    decisions = msgspec.convert(saved.get("decisions", []), list[Decision])
    values = {key: value for key, value in saved.items() if key not in _ENVELOPE}
    model, graph = str(saved.get("model", "")), str(saved.get("graph", ""))
    return CompileRecord(model=model, fingerprint=graph, dispatches=table, decisions=decisions, statistics=values)


def _read(path: Path) -> dict[str, Any]:
    with _statistics_of(path):
        return msgspec.convert(json.loads(path.read_bytes()), dict[str, Any])


@contextmanager
def _statistics_of(path: Path) -> Generator[None]:
    """Raises E0501 for a file whose content is something else."""
    try:
        yield
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
        raise FuselineError("E0501", f"no statistics: {problem}", node=str(path), hint=_SAVE) from problem


def _plan_record(path: Path) -> CompileRecord:
    """A plan says which ops are together, and nothing else."""
    from fuseline.passes.fusion.plan import read_plan

    plan = read_plan(path)
    dispatches = [
        DispatchRecord(
            name=f"group {i}",
            executable="",
            root="group",
            members=[MemberRecord(id=id, kind="", role="member") for id in ids],
        )
        for i, ids in enumerate(plan.groups, 1)
    ]
    wishes = {"force": _sorted(plan.force), "forbid": _sorted(plan.forbid)}
    return CompileRecord(
        model=plan.model,
        fingerprint=plan.graph,
        dispatches=dispatches,
        statistics={"dispatches": len(dispatches), **wishes},
        tuned=list(plan.tuned.change) if plan.tuned is not None else [],
    )


def _sorted(sets: Iterable[Iterable[str]]) -> list[list[str]]:
    return sorted(sorted(ids) for ids in sets)
