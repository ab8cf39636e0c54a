"""The dispatch table: one row per launch, with the source nodes fused into it."""

from __future__ import annotations

from typing import Any

import msgspec
from rich.table import Table

from fuseline.report.quantities import quantity, shortened
from fuseline.report.records import CompileRecord, DispatchRecord


def member_nodes(dispatch: DispatchRecord) -> tuple[str, ...]:
    """The source nodes behind a dispatch, each once, in the order of its members."""
    return tuple(dict.fromkeys(node for member in dispatch.members for node in member.nodes))


def dispatches_json(record: CompileRecord) -> list[dict[str, Any]]:
    """One mapping per dispatch: the record's fields and `nodes`."""
    return [{**msgspec.to_builtins(dispatch), "nodes": list(member_nodes(dispatch))} for dispatch in record.dispatches]


def dispatches_table(record: CompileRecord) -> Table:
    """Name, root op, fused source nodes, flops and bytes of every dispatch."""
    table = Table(
        "dispatch", "root", "fused nodes", "family", "flops", "bytes", box=None, header_style="bold", pad_edge=False
    )
    for column in table.columns[4:]:
        column.justify = "right"
    for dispatch in record.dispatches:
        moved = dispatch.bytes_read + dispatch.bytes_written
        table.add_row(
            dispatch.label,
            dispatch.root,
            shortened(member_nodes(dispatch)),
            dispatch.family,
            quantity(dispatch.flops),
            quantity(moved),
        )
    return table
