"""Dispatches as a graph for Graphviz (the DOT language): a cluster per dispatch, its ops inside, edges by verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fuseline.report.records import CompileRecord, Decision
from fuseline.report.viewers.fusion_graph import Op, edges_of, facts_of, ops_of, why

_MANY_OPS = 400
"""From here on Graphviz is told to stop improving early: 1,700 ops take it half a minute then, not many."""

_COLOURS = {"fused": "#2a8a4a", "missed": "#b3541e"}


def dot(record: CompileRecord) -> str:
    """The text of the graph."""
    ops = ops_of(record)
    lines = [
        f"digraph {_quoted(record.model or 'fuseline')} {{",
        *(["  nslimit=1; nslimit1=1;"] if len(ops) > _MANY_OPS else []),
        "  node [shape=box, fontname=Helvetica, fontsize=10]; edge [fontname=Helvetica, fontsize=8];",
        *_clusters(record, ops),
        *(f"  {_op(op)}" for op in ops if op.dispatch is None),
        *(f"  {_edge(decision)}" for decision in edges_of(record, ops)),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _clusters(record: CompileRecord, ops: Sequence[Op]) -> Iterator[str]:
    for number, dispatch in enumerate(record.dispatches):
        facts = "\n".join(f"{name}: {value}" for name, value in facts_of(dispatch).items())
        yield f"  subgraph cluster_{number} {{ label={_quoted(dispatch.label)}; tooltip={_quoted(facts)};"
        yield from (f"    {_op(op)}" for op in ops if op.dispatch is dispatch)
        yield "  }"


def _op(op: Op) -> str:
    nodes = ", ".join(op.nodes[:3]) + (f", +{len(op.nodes) - 3}" if len(op.nodes) > 3 else "")
    label = "\n".join(line for line in (f"{op.kind} {' x '.join(op.loops)}".strip(), nodes) if line)
    return f"{_quoted(op.id)} [label={_quoted(label)}];"


def _edge(decision: Decision) -> str:
    colour = _COLOURS.get(decision.verdict, "#777777")
    label = "" if decision.verdict == "fused" else decision.code
    ends = f"{_quoted(decision.producer)} -> {_quoted(decision.consumer)}"
    return f"{ends} [color={_quoted(colour)}, label={_quoted(label)}, tooltip={_quoted(why(decision))}];"


def _quoted(text: str) -> str:
    """A quoted string of DOT: a quote and a backslash are escaped, a line end is one in the label."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\r", " ").replace("\n", "\\n") + '"'
