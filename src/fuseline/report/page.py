"""One offline HTML page about a compile: statistics, dispatches with their members, decisions with reasons, filterable
without a server."""

from __future__ import annotations

from importlib.resources import files

import jinja2

from fuseline.report.dispatches import member_nodes
from fuseline.report.quantities import quantity
from fuseline.report.records import CompileRecord, count_edges
from fuseline.report.statistics import statistics_rows


def render_page(record: CompileRecord) -> str:
    """The whole page as one HTML document without any outside reference."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["quantity"] = quantity
    template = environment.from_string(
        files("fuseline.report").joinpath("templates/page.html").read_text(encoding="utf-8")
    )
    return template.render(
        record=record,
        statistics=list(statistics_rows(record)),
        nodes={dispatch.name: member_nodes(dispatch) for dispatch in record.dispatches},
        largest=max((dispatch.flops for dispatch in record.dispatches), default=0) or 1,
        edges=count_edges(record.decisions),
    )
