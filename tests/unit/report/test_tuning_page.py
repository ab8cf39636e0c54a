"""The page about a search."""

from __future__ import annotations

import re

from fuseline.report.records import TunedChange
from fuseline.report.tuning_page import render_tuning_page
from fuseline.report.tuning_records import Confirmed, TrialRow, TuningReport


def report(**fields: object) -> TuningReport:
    rows = [
        TrialRow(number=0, state="complete", values=(1.0,), relative=1.0, best=True, transient_bytes=2048),
        TrialRow(
            number=1,
            state="complete",
            values=(0.5,),
            relative=0.5,
            best=True,
            changes={"plan/<b>": "apart"},
            transient_bytes=4096,
        ),
        TrialRow(number=2, state="failed", code="E0703", message="a <cycle>"),
        TrialRow(number=3, state="pruned", relative=9.0),
    ]
    given: dict[str, object] = {
        "model": "m<1>.onnx",
        "target": "cpu",
        "graph": "g",
        "machine": "k",
        "objectives": ("time",),
        "seed": 1,
        "ended": "budget",
        "seconds": 60.0,
        "default_seconds": 0.002,
        "best": 1,
        "trials": rows,
        "failures": {"E0703": 1},
        "importance": {"plan/<b>": 0.75, "dedup": 0.25, "threads": 0.001},
        "changes": [TunedChange(knob="plan/<b>", choice="apart", gain=0.5, nodes=("Conv_1",))],
        "confirmed": Confirmed(ratio=0.5, low=0.4, high=0.6, seconds=0.001, default_seconds=0.002, faster=True),
        "kept": "tuned",
        **fields,
    }
    return TuningReport(**given)  # pyright: ignore[reportArgumentType]


def test_the_page_has_all_three_plots_and_needs_no_network():
    page = render_tuning_page(report())
    assert page.count("<svg") == 3
    assert not re.search(r"(src|href)=|url\(|http", page)


def test_names_are_text():
    page = render_tuning_page(report())
    assert "<b>" not in page.replace("<p><b>", "") and "plan/&lt;b&gt;" in page and "a &lt;cycle&gt;" in page


def test_every_trial_is_a_point_and_a_row():
    page = render_tuning_page(report())
    history = page.split("<svg")[1]
    assert history.count("<circle") == 4 and "trial 3: pruned, 9.0000 of the default" in history
    assert page.count('<tr><td class="number">') == 4


def test_what_was_measured_afresh_is_said():
    assert "0.5 of the default, between 0.4 and 0.6" in render_tuning_page(report())
    stays = render_tuning_page(report(kept="default", changes=[], confirmed=None))
    assert "The default stays." in stays and "Measured afresh" not in stays


def test_a_search_of_one_trial_has_a_page():
    alone = report(trials=report().trials[:1], best=0, importance={}, failures={}, ended="interrupted")
    page = render_tuning_page(alone)
    assert page.count("<svg") == 1 and "The search was interrupted." in page
