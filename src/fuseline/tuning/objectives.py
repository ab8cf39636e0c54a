"""What is known of a program without running it: memory, code, dispatches and predicted times, from its records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict

from fuseline.report.records import CompileRecord, DispatchRecord
from fuseline.runtime import Artifact
from fuseline.runtime.feed_files import Feeds
from fuseline.runtime.feeds import admit, bind_sizes
from fuseline.runtime.sizes import SizeEvaluator


class Objectives(TypedDict):
    """Fields of a `TrialOutcome`."""

    transient_bytes: int
    code_bytes: int
    dispatches: int
    predicted_seconds: dict[str, float]


def objectives(record: CompileRecord) -> Objectives:
    """The fields of an outcome that the records of a compile tell."""
    return {
        "transient_bytes": _bytes(record.statistics.get("transient_bytes")),
        "code_bytes": _bytes(record.statistics.get("code_bytes")),
        "dispatches": len(record.dispatches),
        "predicted_seconds": predicted_seconds(record.dispatches),
    }


def arena_bytes(artifact: Artifact, feeds: Feeds) -> int:
    """The transient memory of a run on `feeds`: what records cannot tell of a program of symbolic sizes."""
    program = artifact.program
    arrays = admit(program.inputs, feeds)
    return int(SizeEvaluator(bind_sizes(program, [array.shape for array in arrays]))(program.arena_bytes))


def predicted_seconds(dispatches: Iterable[DispatchRecord]) -> dict[str, float]:
    """What the cost model expects of a launch of each dispatch, by its key."""
    found: dict[str, float] = {}
    for dispatch in dispatches:
        key = dispatch_key(dispatch)
        found[key] = found.get(key, 0.0) + dispatch.predicted_ns * 1e-9
    return found


def dispatch_key(dispatch: DispatchRecord) -> str:
    """What a dispatch is called in every program that has it: its members' structural ids; one without members (a copy)
    by its root and its results.

    >>> dispatch_key(DispatchRecord(name="001_copy", executable="e", root="copy", members=[], shape="4x2_f32"))
    'copy 4x2_f32'
    """
    return "+".join(member.id for member in dispatch.members) or f"{dispatch.root} {dispatch.shape}".strip()


def _bytes(value: Any) -> int:
    """A number of the records, 0 where there is none (only a run tells)."""
    return int(value) if isinstance(value, int | float) else 0
