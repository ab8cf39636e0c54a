"""A compiled program as a notebook shows it: figures, and its dispatches as a table."""

from __future__ import annotations

from html import escape

from fuseline.report.dispatches import member_nodes
from fuseline.report.edge_counts import count_edges
from fuseline.report.quantities import plural, quantity, seconds, shortened
from fuseline.report.records import CompileRecord

MOST_ROWS = 20


def notebook_html(record: CompileRecord) -> str:
    """HTML without script; names are escaped."""
    counts = count_edges(record.decisions)
    figures = [
        record.model or "compiled model",
        f"target {record.target or 'cpu'}, {plural(record.threads, 'thread')}",
        plural(len(record.dispatches), "dispatch"),
        f"{counts.fused} edges fused, {sum(counts.missed.values())} missed",
        f"{quantity(record.statistics.get('transient_bytes') or 0)}B of transients",
    ]
    rows = [
        (one.label, one.root, shortened(member_nodes(one)), one.family, seconds(one.predicted_ns * 1e-9))
        for one in sorted(record.dispatches, key=lambda one: -one.predicted_ns)[:MOST_ROWS]
    ]
    head = "".join(f"<th>{name}</th>" for name in ("dispatch", "root", "nodes", "family", "predicted"))
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    rest = len(record.dispatches) - len(rows)
    more = f"<p>and {plural(rest, 'dispatch')} that cost less</p>" if rest > 0 else ""
    return f"<p>{escape('; '.join(figures))}</p><table><tr>{head}</tr>{body}</table>{more}"
