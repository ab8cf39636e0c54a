"""What `diff --fail-if` looks at: a statistic that must not grow from one compile to the next, or not by more than so
much."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from fuseline.errors import FuselineError
from fuseline.report.difference import flat_statistics
from fuseline.report.records import CompileRecord

ANY = "any"

STATISTIC_OF: dict[str, str] = {
    "more-dispatches": "dispatches",
    "more-executables": "executables",
    "more-barriers": "barriers",
    "more-host-ops": "host_ops",
    "more-copies": "copies",
    "more-fills": "fills",
    "more-transposes": "standalone_transposes",
    "more-bytes": "bytes_moved",
    "more-code-bytes": "code_bytes",
    "more-constant-bytes": "constant_bytes.packed",
    "more-scratch-bytes": "scratch_bytes_max",
    "more-transient-bytes": "transient_bytes",
    "more-missed": "edges.missed",
}
"""The statistic behind each condition; of a group (`edges.missed`) the sum."""

COMPILE_SECONDS = "compile-seconds"

_THRESHOLD = re.compile(r"([a-z-]+)>(\d+(?:\.\d+)?)(%?)")
_MEASURED: dict[str, str] = {
    **{name.removeprefix("more-"): key for name, key in STATISTIC_OF.items()},
    COMPILE_SECONDS: "phase_seconds",
}
"""What a threshold may be about."""


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """`statistic` grows by more than `growth`, which is a part of what it was if `relative`; without a statistic,
    anything differs."""

    text: str
    statistic: str = ""
    growth: float = 0.0
    relative: bool = False

    @property
    def any(self) -> bool:
        """Whether every difference meets it."""
        return not self.statistic


def condition(text: str) -> Condition:
    """`any`, `more-dispatches`, `dispatches>2` or `transient-bytes>2%` as a value. Raises E0501 for other text.

    >>> condition("transient-bytes>2%").growth
    0.02
    """
    if text == ANY:
        return Condition(text=text)
    if text in STATISTIC_OF:
        return Condition(text=text, statistic=STATISTIC_OF[text])
    found = _THRESHOLD.fullmatch(text)
    if found is None or found[1] not in _MEASURED:
        raise FuselineError(
            "E0501",
            f"--fail-if does not understand {text!r}",
            hint=f"write any, {', '.join(STATISTIC_OF)}, or NAME>N or NAME>N% with a NAME of {', '.join(_MEASURED)}",
        )
    relative = bool(found[3])
    amount = float(found[2]) / (100 if relative else 1)
    return Condition(text=text, statistic=_MEASURED[found[1]], growth=amount, relative=relative)


def regression(wanted: Condition, before: CompileRecord, after: CompileRecord) -> str | None:
    """How a condition about a statistic was met, as `dispatches: 53 -> 55`, or None. What only the run knows is more
    than any number, and no more than itself. Raises E0501 where one side did not save the statistic."""
    old, new = (_saved(wanted, record) for record in (before, after))
    if old is None or new is None:
        return f"{wanted.statistic}: {old:.10g} -> what the run knows" if old is not None else None
    allowed = old * (1 + wanted.growth) if wanted.relative else old + wanted.growth
    return f"{wanted.statistic}: {old:.10g} -> {new:.10g}" if new > allowed else None


def figure(record: CompileRecord, statistic: str) -> float | None:
    """A statistic as a number, of a group the sum; None where it was not saved or has no number (an unbounded size)."""
    found = _parts(record, statistic)
    return float(sum(found)) if found is not None and all(isinstance(part, int | float) for part in found) else None


def _parts(record: CompileRecord, statistic: str) -> list[Any] | None:
    """The values of a statistic, one, or those of a group; None where it was not saved."""
    values = flat_statistics(record)
    found = [value for key, value in values.items() if key == statistic or key.startswith(f"{statistic}.")]
    return found if found or (statistic == "edges.missed" and "edges.fused" in values) else None


def _saved(wanted: Condition, record: CompileRecord) -> float | None:
    if _parts(record, wanted.statistic) is None:
        raise FuselineError(
            "E0501",
            f"--fail-if {wanted.text} needs {wanted.statistic}, which was not saved",
            node=record.model or None,
            hint="save it with `fuseline stats MODEL --json`; a plan knows its dispatches only",
        )
    return figure(record, wanted.statistic)
