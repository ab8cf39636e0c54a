"""What `diff --fail-if` looks at: a statistic that must not grow from one compile to the next."""

from __future__ import annotations

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

CONDITIONS = (ANY, *STATISTIC_OF)


def regression(condition: str, before: CompileRecord, after: CompileRecord) -> str | None:
    """How `condition` was met, as `dispatches: 53 -> 55`, or None. Raises E0501 where one side did not save the
    statistic."""
    statistic = STATISTIC_OF[condition]
    old, new = _value(statistic, before, condition), _value(statistic, after, condition)
    return f"{statistic}: {old:g} -> {new:g}" if new > old else None


def _value(statistic: str, record: CompileRecord, condition: str) -> float:
    values = flat_statistics(record)
    found = [value for key, value in values.items() if key == statistic or key.startswith(f"{statistic}.")]
    if not found and not (statistic == "edges.missed" and "edges.fused" in values):
        hint = "save it with `fuseline stats MODEL --json`; a plan knows its dispatches only"
        raise FuselineError(
            "E0501",
            f"--fail-if {condition} needs {statistic}, which was not saved",
            node=record.model or None,
            hint=hint,
        )
    return float(sum(found))
