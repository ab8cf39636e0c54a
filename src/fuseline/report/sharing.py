"""Which dispatches share code: the classes, what was decided about those that look alike, and the companions of one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from fuseline.report.quantities import plural, quantity, seconds, shortened
from fuseline.report.records import CompileRecord, DispatchRecord, SharingDecision


@dataclass(frozen=True, slots=True)
class CodeClass:
    """The dispatches that run one kernel, or the same kernels; `code_bytes` of those together."""

    kernels: tuple[str, ...]
    dispatches: tuple[str, ...]
    code_bytes: int


def code_classes(record: CompileRecord) -> list[CodeClass]:
    """Dispatches by their kernels, in program order; each for itself where nothing is shared."""
    found: dict[object, list[DispatchRecord]] = {}
    for dispatch in record.dispatches:
        own = record.dedup == "none" or not dispatch.kernels
        found.setdefault(dispatch.name if own else tuple(sorted(dispatch.kernels)), []).append(dispatch)
    return [
        CodeClass(members[0].kernels, tuple(member.name for member in members), members[0].code_bytes)
        for members in found.values()
    ]


def companions(record: CompileRecord, dispatch: DispatchRecord) -> list[str]:
    """The other dispatches that run a kernel of `dispatch`."""
    if record.dedup == "none":
        return []
    mine = set(dispatch.kernels)
    return [other.name for other in record.dispatches if other is not dispatch and mine.intersection(other.kernels)]


def sharing_lines(record: CompileRecord) -> Iterator[str]:
    """The whole report: a summary, the classes of several dispatches, what shares and what does not, and why."""
    classes = code_classes(record)
    executables, code_bytes = (record.statistics.get(key) or 0 for key in ("executables", "code_bytes"))
    counts = f"{plural(len(record.dispatches), 'dispatch')}, {plural(executables, 'executable')}"
    yield f"level {record.dedup}: {counts}, {quantity(code_bytes)} bytes of code"
    for one in (one for one in classes if len(one.dispatches) > 1):
        yield f"  one executable ({quantity(one.code_bytes)} bytes): {shortened(one.dispatches, 12)}"
    alone = [one.dispatches[0] for one in classes if len(one.dispatches) == 1]
    if alone:
        yield f"  an executable of their own: {shortened(alone, 12)}"
    yield from (f"  {line}" for decision in record.sharing for line in _decision(decision))
    for dispatch in record.dispatches:
        yield from (f"  {dispatch.name} {line}" for line in _loss(dispatch))
    for dispatch in record.dispatches:
        yield from (f"  {dispatch.name} keeps its code: {_named(record, why)}" for why in dispatch.unshared)


def companion_lines(record: CompileRecord, dispatch: DispatchRecord) -> Iterator[str]:
    """With whom one dispatch shares its code, and what keeps it from others like it."""
    others = companions(record, dispatch)
    if others:
        yield f"  shares its code with {shortened(others, 8)}"
        yield from (f"  {line}" for line in _loss(dispatch))
    touching = [one for one in record.sharing if dispatch.name in (one.first, one.second)]
    yield from (f"  {line}" for decision in touching for line in _decision(decision))
    yield from (f"  keeps its code: {_named(record, why)}" for why in dispatch.unshared)


def sharing_json(record: CompileRecord) -> dict[str, Any]:
    """The same as a document."""
    return {
        "level": record.dedup,
        "executables": record.statistics.get("executables"),
        "code_bytes": record.statistics.get("code_bytes"),
        "classes": [
            {"kernels": list(one.kernels), "dispatches": list(one.dispatches), "code_bytes": one.code_bytes}
            for one in code_classes(record)
        ],
        "decisions": msgspec.to_builtins(record.sharing),
        "losses": {one.name: round(one.sharing_loss, 4) for one in record.dispatches if one.sharing_loss},
        "unshared": {dispatch.name: list(dispatch.unshared) for dispatch in record.dispatches if dispatch.unshared},
    }


def _loss(dispatch: DispatchRecord) -> Iterator[str]:
    """What sharing costs a launch, where it is more than nothing."""
    if dispatch.sharing_loss >= 0.005:
        yield f"takes {dispatch.sharing_loss:.0%} longer in shared code, predicted"


def _named(record: CompileRecord, why: str) -> str:
    """A reason in terms of dispatches rather than of executables, which it names with an @."""
    first = {dispatch.executable: dispatch.name for dispatch in reversed(record.dispatches)}
    return re.sub(r"@(\w+)", lambda found: first.get(found[1], found[0]), why)


def _decision(decision: SharingDecision) -> Iterator[str]:
    both = f"{decision.first} and {decision.second}"
    if decision.verdict == "shared":
        yield f"{'shared':<7} {both}: {decision.detail}"
        return
    price = f" (a launch would take {seconds(decision.ns * 1e-9)} longer)" if decision.ns else ""
    yield f"{'apart':<7} {both}: {decision.code}: {decision.detail}{price}"
