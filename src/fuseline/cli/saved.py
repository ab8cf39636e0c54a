"""What `diff` compares: a model (compiled), an artifact, a plan, or the saved output of `stats --json`, each as a
record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from fuseline.cli.models import record_of
from fuseline.errors import FuselineError
from fuseline.report.records import CompileRecord, Decision, DispatchRecord, MemberRecord

PLAN_SUFFIX = ".toml"

_ENVELOPE = ("version", "command", "model", "target", "threads", "graph", "warnings", "dispatch_table", "decisions")
_SAVE = "save `fuseline stats MODEL --dispatches --decisions --json`"


def any_record(path: Path, options: Mapping[str, Any]) -> CompileRecord:
    """The record behind `path`. Raises E0501 for a file that holds no statistics, E0701 for a malformed plan, and what
    a compile raises."""
    if path.suffix == ".json":
        return _saved_record(path)
    return _plan_record(path) if path.suffix == PLAN_SUFFIX else record_of(path, options)


def _saved_record(path: Path) -> CompileRecord:
    try:
        saved: dict[str, Any] = json.loads(path.read_bytes())
        table = msgspec.convert(saved.get("dispatch_table", []), list[DispatchRecord])
        decisions = msgspec.convert(saved.get("decisions", []), list[Decision])
        values = {key: value for key, value in saved.items() if key not in _ENVELOPE}
    except (OSError, ValueError, AttributeError, RecursionError, msgspec.ValidationError) as problem:
        raise FuselineError("E0501", f"no statistics: {problem}", node=str(path), hint=_SAVE) from problem
    model, graph = str(saved.get("model", "")), str(saved.get("graph", ""))
    return CompileRecord(model=model, fingerprint=graph, dispatches=table, decisions=decisions, statistics=values)


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
    )


def _sorted(sets: Iterable[Iterable[str]]) -> list[list[str]]:
    return sorted(sorted(ids) for ids in sets)
