"""Which dispatch of the record each command of a program launches."""

from __future__ import annotations

from collections.abc import Iterable

from fuseline.report.records import DispatchRecord


def dispatches_launched(dispatches: Iterable[DispatchRecord], labels: Iterable[str]) -> list[DispatchRecord | None]:
    """The dispatch behind each command, in the order of the program: commands are labelled by executable, and launches
    of one executable keep their order. None for what the runtime launches itself, a copy or a fill."""
    waiting: dict[str, list[DispatchRecord]] = {}
    for dispatch in dispatches:
        waiting.setdefault(dispatch.executable, []).append(dispatch)
    return [waiting[label].pop(0) if waiting.get(label) else None for label in labels]
