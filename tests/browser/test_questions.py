"""The four questions that the report is there for, in the steps that docs/report.md counts: clicks and keys alone, each
of which something on the page suggests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

from fuseline.cli.main import main
from fuseline.report.advice import ADVICE
from tests.browser.browser import Page, chromium
from tests.browser.gated_layers import gated_layers

ENTER, ESCAPE = "\ue007", "\ue00c"


def _model() -> onnx.ModelProto:
    """Layers of a convolution and a gate; the second convolution does most of the work."""
    model = gated_layers((8, 8, 48, 8), __name__)
    for node in model.graph.node:
        node.name = f"{node.output[0]}_{node.op_type}"
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("questions")
    onnx.save(_model(), folder / "m.onnx")
    model = str(folder / "m.onnx")
    assert main(["report", model, "-o", str(folder / "one.html"), "--no-ir"]) == 0
    without = ["--compare-with", "without-rule=elementwise-epilogue", "--no-ir"]
    assert main(["report", model, "-o", str(folder / "two.html"), *without]) == 0
    return folder


def test_which_dispatch_costs_most_and_how_far_it_is_from_the_roof(browser: Any, folder: Path) -> None:
    page = Page(browser, folder / "one.html")  # the answer is on the first screen
    first = page.one("#answers dd")
    assert "% of the roof" in first.text and "predicted" in first.text
    page.click("#answers dd a")  # step 1: its link
    assert page.one("#details h2").text in first.text
    assert page.one("#view tbody tr.pick").text.startswith(page.one("#details h2").text)
    assert "% of the roof" in page.text("#details")


def test_why_two_ops_did_not_fuse_and_what_would_change_it(browser: Any, folder: Path) -> None:
    page = Page(browser, folder / "one.html")
    assert "type both names" in page.text("#answers")
    page.press("/")  # step 1
    page.press("x1_Mul a1_Conv")  # step 2: the names
    assert "missed" in page.until(lambda: page.text("#found li"))
    page.press(ENTER)  # step 3
    details = page.until(lambda: page.text("#details"))
    assert "They do not share a dispatch" in details
    code = page.one("#details a[href*='reason']").text
    assert ADVICE[code] in details and f"about {code}" in details
    assert "m.onnx --force " in page.text("#details .advice code")
    assert browser.execute_script("return document.activeElement.id") == "details"
    page.press(ESCAPE)
    page.until(lambda: browser.execute_script("return route.pick") == "")


def test_two_names_that_no_edge_joins_are_answered(browser: Any, folder: Path) -> None:
    page = Page(browser, folder / "one.html")
    page.press("/")
    page.press("a0_Conv a2_Conv")
    assert "only such can fuse" in page.until(lambda: page.text("#found li"))


def test_what_a_rule_that_was_switched_off_changed(browser: Any, folder: Path) -> None:
    page = Page(browser, folder / "two.html")  # it opens on what differs
    assert "without-rule=elementwise-epilogue" in page.text("#verdict") and "dispatches" in page.text("#verdict")
    row = page.one("#view tbody tr.pick")
    assert "fused by elementwise-epilogue" in row.text
    row.click()  # step 1: which edges
    details = page.until(lambda: page.text("#details"))
    assert "_Conv" in details and "as given" in details and "without-rule" in details


def test_where_the_peak_of_memory_is(browser: Any, folder: Path) -> None:
    page = Page(browser, folder / "one.html")
    answer = page.until(lambda: next(one.text for one in page.all("#answers dd") if "in wave" in one.text))
    browser.find_element("link text", "The arena over time").click()  # step 1
    page.until(lambda: page.all("#memory-chart rect.peak"))
    assert answer.split(" in wave")[0] in page.text("#view")
    assert page.all("#view tbody tr")


def test_a_narrow_screen_shows_what_was_selected(folder: Path) -> None:
    with chromium(420, 800) as narrow:
        page = Page(narrow, folder / "one.html")
        page.click("#answers dd a")
        top = "return document.getElementById('details').getBoundingClientRect().top"
        assert 0 < narrow.execute_script(top) < 800
