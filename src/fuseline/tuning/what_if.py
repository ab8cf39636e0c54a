"""What a change of a compile would do: two compiles, their counts and predicted time, and, where wanted, their measured
time in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np

from fuseline.errors import FuselineError
from fuseline.report.records import CompileRecord, Decision, predicted_seconds
from fuseline.report.subjects import Subject, find_subject, suggestions
from fuseline.verify.measure import interleaved, paired_ratio


class Program(Protocol):
    """A compiled model."""

    @property
    def record(self) -> CompileRecord:
        """What its compile decided."""
        ...

    def bind(self, feeds: Mapping[str, Any]) -> Callable[[], object]:
        """A call that runs it once."""
        ...


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What one change does; pairs are (before, after).

    `predicted_seconds` sums what the cost model expects of every launch. `ratio`: measured time after / before, with
    its interval of 95 %, where it was measured. `error`: why there is no program with the change.
    """

    change: str
    dispatches: tuple[int, int] = (0, 0)
    predicted_seconds: tuple[float, float] = (0.0, 0.0)
    transient_bytes: tuple[int, int] = (0, 0)
    code_bytes: tuple[int, int] = (0, 0)
    ratio: tuple[float, float, float] | None = None
    error: dict[str, Any] | None = None


def effect_of(
    change: str, before: Program, make: Callable[[], Program], feeds: Mapping[str, Any] | None, rounds: int = 15
) -> Effect:
    """The effect of `change`, whose program `make` compiles; measured on `feeds` where those are given. A compile that
    is refused is an effect with an error."""
    try:
        after = make()
    except FuselineError as error:
        return Effect(change=change, error=error.to_json())
    old, new = before.record, after.record
    return Effect(
        change=change,
        dispatches=(len(old.dispatches), len(new.dispatches)),
        predicted_seconds=(predicted_seconds(old), predicted_seconds(new)),
        transient_bytes=(_figure(old, "transient_bytes"), _figure(new, "transient_bytes")),
        code_bytes=(_figure(old, "code_bytes"), _figure(new, "code_bytes")),
        ratio=None if feeds is None else _measured(before, after, feeds, rounds),
    )


def _figure(record: CompileRecord, name: str) -> int:
    return int(record.statistics.get(name) or 0)


def _measured(before: Program, after: Program, feeds: Mapping[str, Any], rounds: int) -> tuple[float, float, float]:
    times = interleaved({"before": before.bind(feeds), "after": after.bind(feeds)}, rounds=rounds)
    found = paired_ratio(np.asarray(times["after"]), np.asarray(times["before"]))
    return found.value, found.low, found.high


# plans ----------------------------------------------------------------------------------------------------------------


def ids_between(record: CompileRecord, first: str, second: str) -> list[str]:
    """The ids of the ops to force together, or to keep apart, for two nodes, ops or dispatches: the ends of the
    decisions about edges between them; where no edge joins them, all their ops. Raises E0501 for a name that nothing
    has, and for what is no op of a dispatch."""
    one, other = _subject(record, first), _subject(record, second)
    ends = [
        id
        for decision in record.decisions
        if _joins(decision, one, other) or _joins(decision, other, one)
        for id in (decision.producer, decision.consumer)
    ]
    return list(dict.fromkeys(ends)) or sorted(one.ids | other.ids)


def _joins(decision: Decision, producer: Subject, consumer: Subject) -> bool:
    return decision.producer in producer.ids and decision.consumer in consumer.ids


def _subject(record: CompileRecord, name: str) -> Subject:
    found = find_subject(record, name)
    if found is None:
        near = ", ".join(suggestions(record, name, 3))
        raise FuselineError("E0501", f"no node is called {name}", node=name, hint=near and f"did you mean {near}?")
    if not found.ids:
        raise FuselineError("E0501", f"{name} is no op of a dispatch", node=name, hint="`fuseline explain` says why")
    return found


def plan_with(force: Sequence[Sequence[str]] = (), forbid: Sequence[Sequence[str]] = ()) -> str:
    """A plan that changes nothing but this."""
    lines = ["version = 1", f"force = {_lists(force)}", f"forbid = {_lists(forbid)}"]
    return "\n".join(lines) + "\n"


def _lists(sets: Sequence[Sequence[str]]) -> str:
    return msgspec.json.encode([list(ids) for ids in sets]).decode()


def scratch_description(limit_bytes: int, folder: Path) -> Path:
    """A description of this CPU with less scratch, as a file in `folder` for `--target cpu:FILE`."""
    path = folder / f"scratch-{limit_bytes}.toml"
    path.write_text(f"scratch_bytes_limit = {limit_bytes}\n", encoding="utf-8")
    return path
