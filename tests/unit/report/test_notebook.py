"""What a notebook shows of a program."""

from __future__ import annotations

import msgspec

import fuseline
from fuseline.report.notebook import MOST_ROWS, notebook_html
from tests.small_models import mlp
from tests.unit.report.records import RECORD


def test_names_are_escaped_and_the_costliest_come_first() -> None:
    first, second = RECORD.dispatches
    first = msgspec.structs.replace(first, predicted_ns=1.0)
    second = msgspec.structs.replace(second, predicted_ns=9.0, name="<b>")
    page = notebook_html(msgspec.structs.replace(RECORD, dispatches=[first, second], model="<i>"))
    assert "<b>" not in page and "<i>" not in page and page.index("&lt;b&gt;") < page.index("main_dispatch_0")


def test_long_lists_are_cut() -> None:
    page = notebook_html(msgspec.structs.replace(RECORD, dispatches=[*RECORD.dispatches] * MOST_ROWS))
    assert page.count("<tr>") == MOST_ROWS + 1 and f"and {MOST_ROWS} dispatches" in page


def test_a_program_shows_itself() -> None:
    program = fuseline.compile(mlp(), target="null")
    assert "<table>" in program._repr_html_()  # pyright: ignore[reportPrivateUsage]
