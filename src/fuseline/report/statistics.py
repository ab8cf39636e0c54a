"""The statistics of one compile, as ordered rows for a table; their JSON form is `record.statistics` itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from fuseline.report.quantities import quantity, seconds
from fuseline.report.records import CompileRecord

_ORDER = (
    "dispatches",
    "executables",
    "barriers",
    "host_ops",
    "host_executors",
    "host_op_executors",
    "fills",
    "copies",
    "standalone_transposes",
    "gathers",
    "inside",
    "code_bytes",
    "fallbacks",
    "idioms",
    "near_idioms",
    "forms",
    "bytes_moved",
    "transient_bytes",
    "largest_live_bytes",
    "arena_bytes",
    "scratch_bytes_max",
    "in_place",
    "constant_bytes",
    "quantization",
    "generic_ops_before",
    "generic_ops_after",
    "edges",
    "phase_seconds",
)


def statistics_json(record: CompileRecord) -> dict[str, Any]:
    """The keys of `stats --json`: what the compile counted, and seconds per phase."""
    out = dict(record.statistics)
    out.setdefault("phase_seconds", dict(record.phase_seconds))
    return out


def statistics_rows(record: CompileRecord) -> Iterator[tuple[str, str]]:
    """`(key, value)` pairs, nested mappings flattened with dots: dispatches first, seconds last, keys this page does
    not know at the end."""
    values = statistics_json(record)
    known = [key for key in _ORDER if key in values]
    for key in known + sorted(set(values) - set(known)):
        yield from _flatten(key, values[key])


def _flatten(key: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _flatten(f"{key}.{name}", item)
    else:
        yield key, _text(key, value)


def _text(key: str, value: Any) -> str:
    if key.startswith("phase_seconds") and isinstance(value, int | float):
        return seconds(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{quantity(value)}B" if "bytes" in key and value >= 10_000 else quantity(value)


def statistics_table(record: CompileRecord) -> Table:
    """The statistics as a two-column table."""
    table = Table("statistic", "value", box=None, header_style="bold", pad_edge=False)
    table.columns[1].justify = "right"
    for key, value in statistics_rows(record):
        table.add_row(key, value)
    return table
