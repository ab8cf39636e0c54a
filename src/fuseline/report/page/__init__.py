"""The report: one offline page about one compile, or about two side by side (docs/report.md)."""

from fuseline.report.page.inputs import PageInputs, Side, SourceNode
from fuseline.report.page.render import render_page

__all__ = ["PageInputs", "Side", "SourceNode", "render_page"]
