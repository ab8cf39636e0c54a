"""The page as one HTML document without any outside reference.

Everything that comes from a model travels as compressed JSON in base64, of which no letter is markup, and the script
only ever writes it as text: a name such as `</script>` is a name.
"""

from __future__ import annotations

import base64
import gzip
from importlib.resources import files
from typing import Any

import jinja2
import msgspec

from fuseline.report.advice import ADVICE
from fuseline.report.edge_counts import count_edges
from fuseline.report.page.comparison import comparison
from fuseline.report.page.inputs import PageInputs, Side
from fuseline.report.page.side_document import side_document

SCRIPTS = (
    "vendor/dagre.js",
    "dom.js",
    "data.js",
    "format.js",
    "tables.js",
    "views.js",
    "layers.js",
    "graph_model.js",
    "charts.js",
    "details.js",
    "compare.js",
    "answers.js",
    "overview.js",
    "graph_view.js",
    "lists.js",
    "search.js",
    "start.js",
)
"""The page's script, in the order in which its parts build on each other; tabs stand in the order in which
they are registered."""


def render_page(inputs: PageInputs) -> str:
    """The whole page. Parts that are read on demand only (IR, assembly) are blobs of their own."""
    sides = [inputs.first] if inputs.second is None else [inputs.first, inputs.second]
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(_text("page.html")).render(
        title=" against ".join(_title(side) for side in sides),
        summary=[_summary(side) for side in sides],
        style=_text("page.css"),
        scripts=[_text(f"app/{name}") for name in SCRIPTS],
        blobs=_blobs(inputs, sides),
    )


def _blobs(inputs: PageInputs, sides: list[Side]) -> dict[str, str]:
    main: dict[str, Any] = {
        "version": inputs.version,
        "sides": [side_document(side) for side in sides],
        "advice": ADVICE,
        "reasons": dict(inputs.reasons),
        "comparison": comparison(*sides) if len(sides) == 2 else None,
    }
    found = {"main": _packed(main)}
    for number, side in enumerate(sides):
        if side.ir:
            found[f"ir{number}"] = _packed({"texts": side.ir_texts, "nodes": side.ir})
        if side.assembly:
            found[f"assembly{number}"] = _packed(dict(side.assembly))
    return found


def _packed(value: Any) -> str:
    """JSON, compressed, as base64; the same for equal values."""
    return base64.b64encode(gzip.compress(msgspec.json.encode(value), 9, mtime=0)).decode()


def _summary(side: Side) -> str:
    """A line for readers without a script."""
    record, counts = side.record, count_edges(side.record.decisions)
    missed = sum(counts.missed.values())
    return (
        f"{record.model or side.title}: target {record.target or 'cpu'}, {record.threads} threads, "
        f"{len(record.dispatches)} dispatches, {counts.fused} edges fused, {counts.side_by_side} groups side by side, "
        f"{missed} missed, {counts.superseded} superseded"
    )


def _title(side: Side) -> str:
    """The model's file and, beside another side, what is particular about this one."""
    model = side.record.model.replace("\\", "/").rpartition("/")[2]
    return (
        f"{model} ({side.title})"
        if model and side.title not in ("", model.rpartition(".")[0])
        else model or side.title or "compile"
    )


def _text(name: str) -> str:
    return files("fuseline.report").joinpath("page", name).read_text(encoding="utf-8")
