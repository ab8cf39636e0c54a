"""The report in a browser: it opens, a search finds, a click shows the reason, boxes open, two compiles compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

from fuseline.cli.main import main
from tests.browser.browser import Page, chromium
from tests.browser.gated_layers import gated_layers
from tests.graphs.onnx_text import onnx_model

HOSTILE = "<img src=x onerror=document.title='broken'>"
LAYERS = 3
ENTER = "\ue007"
CLICK = "document.querySelector(arguments[0]).dispatchEvent(new MouseEvent('click', {bubbles: true}))"


def _model() -> onnx.ModelProto:
    """Layers of convolutions, which stay dispatches of their own, and a node whose name is markup."""
    model = gated_layers((8,) * (LAYERS + 1), __name__)
    for number, node in enumerate(model.graph.node):
        node.name = f"/net/layer.{number // 3}/{node.output[0]}/{node.op_type}"
    model.graph.node[-1].name = HOSTILE
    return model


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    onnx.save(_model(), folder / "m.onnx")
    model = str(folder / "m.onnx")
    assert main(["report", model, "-o", str(folder / "one.html"), "--assembly", "--threads", "2"]) == 0
    changed = ["--compare-with", "fusion=none", "--no-ir"]
    assert main(["report", model, "-o", str(folder / "two.html"), *changed, "--threads", "2"]) == 0
    return folder


def test_it_opens_and_says_what_costs_most_and_how_far_it_is_from_the_roof(browser: Any, pages: Path) -> None:
    page = Page(browser, pages / "one.html")
    assert page.text("#tabs [aria-selected=true]") == "Overview"
    row = page.one("#view tbody tr.pick")
    assert "%" in row.text
    row.click()
    assert "of the roof" in page.text("#details") and "of all dispatches" in page.text("#details")
    assert len(page.all("#roofline circle")) == LAYERS
    assert page.problems() == []


def test_names_with_markup_stay_text(browser: Any, pages: Path) -> None:
    page = Page(browser, pages / "one.html", f"view=nodes&side=0&pick=node:{HOSTILE.replace('=', '%3D')}")
    assert HOSTILE in page.text("#details h2") and HOSTILE in page.text("#view table")
    for view in ("graph", "decisions", "dispatches", "overview"):
        page.go(f"view={view}&side=0&pick=")
    assert page.all("img") == [] and browser.title != "broken"


def test_a_search_finds_a_node_by_keyboard(browser: Any, pages: Path) -> None:
    page = Page(browser, pages / "one.html")
    page.click("#view")
    page.press("/")
    page.press("layer.1 sigmoid")
    assert len(page.until(lambda: page.all("#found li"))) >= 1
    page.press(ENTER)
    assert page.until(lambda: page.text("#details h2").endswith("/Sigmoid"))
    assert page.all("#details a[href*='dispatch']")


def test_why_two_ops_did_not_fuse_and_what_would_change_it(browser: Any, pages: Path) -> None:
    page = Page(browser, pages / "one.html", "view=decisions&side=0&pick=")
    page.click("tr.pick[data-pick^='group:']")
    details = page.text("#details")
    assert "missed" in details and "to change it:" in details
    page.click("#details a[href*='reason']")
    page.until(lambda: "#" in page.text("#details pre.prose"))


def test_boxes_fold_and_open_and_edges_say_why(browser: Any, pages: Path) -> None:
    page = Page(browser, pages / "one.html", "view=graph&side=0&pick=")
    graph = page.one(".graph[data-graph^='dispatches']")
    count = len(graph.find_elements("css selector", ".box"))
    fold, unfold = graph.find_elements("css selector", "button")[:2]
    fold.click()
    assert len(graph.find_elements("css selector", ".box")) <= count
    unfold.click()
    box = graph.find_element("css selector", ".box[data-pick^='dispatch']")
    box.send_keys(" ")
    page.until(lambda: graph.find_elements("css selector", ".box[data-pick^='op:']"))
    browser.execute_script(CLICK, ".edge.missed")
    assert "They do not share a dispatch" in page.text("#details")


@pytest.mark.parametrize("key", [ENTER, " "])
def test_an_edge_says_why_by_keyboard(browser: Any, pages: Path, key: str) -> None:
    """Tab reaches it, its name is what it leads from and to and why, a key selects it, Escape comes back to it."""
    page = Page(browser, pages / "one.html", "view=graph&side=0&pick=")
    reached = "return document.activeElement.matches('.edge.missed')"
    browser.execute_script("document.querySelector('.graph[data-graph^=dispatches] svg').focus()")
    for _ in range(len(page.all("[tabindex]"))):
        if browser.execute_script(reached):
            break
        page.press("\ue004")
    edge = browser.switch_to.active_element
    assert edge.aria_role == "button"
    picked, name = edge.get_attribute("data-pick"), edge.accessible_name
    page.press(key)
    page.until(lambda: "They do not share a dispatch" in page.text("#details"))
    assert name.startswith(f"{page.text('#details h2')}: missed ")
    assert page.text("#details .decision a[href*='reason']") in name
    page.press("\ue00c")
    page.until(lambda: browser.switch_to.active_element.get_attribute("data-pick") == picked)
    page.until(lambda: not page.all("#details h2"))
    assert page.problems() == []


def test_only_edges_with_an_action_take_the_focus(browser: Any, pages: Path) -> None:
    page = Page(browser, pages / "one.html", "view=graph&side=0&pick=")
    for edge in page.all(".edge"):
        takes = edge.get_attribute("data-pick") is not None
        assert (edge.get_attribute("tabindex") == "0") == takes
        assert not takes or " → " in edge.accessible_name


def test_a_box_that_is_opened_keeps_the_focus(browser: Any, pages: Path) -> None:
    page = Page(browser, pages / "one.html", "view=graph&side=0&pick=")
    box = page.one(".graph[data-graph^='dispatches'] .box[data-pick^='dispatch']")
    name = box.get_attribute("data-box")
    box.send_keys(" ")
    around = "return document.activeElement.closest('[data-cluster]')?.dataset.cluster ?? null"
    page.until(lambda: browser.execute_script(around) == name)
    assert browser.switch_to.active_element.aria_role == "button"
    page.press(ENTER)
    page.until(lambda: browser.switch_to.active_element.get_attribute("data-box") == name)


def test_a_program_without_dispatches_opens(browser: Any, tmp_path: Path) -> None:
    """Everything was known at compile time: there is nothing to draw, and no drawing is broken."""
    onnx.save(
        onnx_model("() => (y) { a = Constant<value_floats = [1.0, 2.0]>() [one] y = Add(a, a) }"), tmp_path / "m.onnx"
    )
    assert main(["report", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.html")]) == 0
    page = Page(browser, tmp_path / "m.html", "view=graph&side=0&pick=")
    assert "no dispatches" in page.text(".graph[data-graph^='dispatches'] svg")
    for tab in browser.execute_script("return [...document.querySelectorAll('#tabs [role=tab]')].map(({ id }) => id)"):
        page.go(f"view={tab.removeprefix('tab-')}&side=0&pick=")
    assert page.problems() == []


def test_a_dispatch_marks_its_nodes_in_the_model(browser: Any, pages: Path) -> None:
    page = Page(browser, pages / "one.html", "view=graph&side=0&pick=")
    page.click(".graph[data-graph^='sources'] button:nth-of-type(2)")
    browser.execute_script(CLICK, ".graph[data-graph^=dispatches] .box")
    assert page.until(lambda: page.all(".graph[data-graph^='sources'] .box.related"))


def test_ir_and_assembly_are_read_on_demand(browser: Any, pages: Path) -> None:
    page = Page(browser, pages / "one.html", "view=dispatches&side=0&pick=")
    page.click("tr.pick")
    for part, words in (("ir", "linalg.generic"), ("assembly", "ret")):
        page.click(f"#details #{part} summary")
        page.until(lambda part=part, words=words: words in page.text(f"#details #{part}"))


def test_where_the_peak_of_memory_is(browser: Any, pages: Path) -> None:
    page = Page(browser, pages / "one.html", "view=memory&side=0&pick=")
    assert "in wave" in page.text("#view") and page.all("#memory-chart rect.life")
    page.click("#view tr.pick")
    assert "edge" in page.text("#details")


def test_two_compiles_compare(browser: Any, pages: Path) -> None:
    page = Page(browser, pages / "two.html", "view=compare&side=0&pick=")
    assert "fusion=none" in page.text("#verdict") and "of the time" in page.text("#verdict")
    assert "fused" in page.text("#view") and len(page.all("tr.pick")) > 0
    page.go("view=dispatches&side=0&pick=")
    first = len(page.all("#view tr.pick"))
    page.go("view=dispatches&side=1&pick=")
    assert len(page.all("#view tr.pick")) > first > 0
    assert page.problems() == []


def test_tables_sort_and_filter(browser: Any, pages: Path) -> None:
    page = Page(browser, pages / "one.html", "view=dispatches&side=0&pick=")
    page.click("#view th:nth-of-type(5) button")
    assert page.one("#view th:nth-of-type(5)").get_attribute("aria-sort") == "ascending"
    page.one("#view input[type=search]").send_keys("no such thing")
    assert page.until(lambda: not page.all("#view tbody tr"))


def test_a_narrow_screen_and_a_dark_theme(pages: Path) -> None:
    with chromium(420, 800) as narrow:
        page = Page(narrow, pages / "one.html", "view=overview&side=0&pick=")
        widths = narrow.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
        assert widths[0] <= widths[1] + 1
        before = narrow.execute_script("return getComputedStyle(document.body).backgroundColor")
        for _ in range(2):
            page.click("#theme")
        assert narrow.execute_script("return getComputedStyle(document.body).backgroundColor") != before
