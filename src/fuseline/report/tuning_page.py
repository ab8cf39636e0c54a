"""One offline HTML page about a search: how it went, which knobs mattered, time against memory, what changed, and every
trial."""

from __future__ import annotations

from importlib.resources import files

import jinja2

from fuseline.report.quantities import quantity, seconds
from fuseline.report.tuning_plots import history, importances, pareto
from fuseline.report.tuning_records import TuningReport


def render_tuning_page(report: TuningReport) -> str:
    """The whole page as one HTML document without any outside reference."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["quantity"] = quantity
    environment.filters["seconds"] = seconds
    text = files("fuseline.report").joinpath("templates/tuning.html").read_text(encoding="utf-8")
    drawn = {
        "History": history(report),
        "Importance of knobs": importances(report),
        "Time against memory": pareto(report),
    }
    plots = {title: plot for title, plot in drawn.items() if plot}
    return environment.from_string(text).render(report=report, plots=plots)
