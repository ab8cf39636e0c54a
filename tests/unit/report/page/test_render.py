"""The page is one offline document, and what a model says never is markup."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html.parser import HTMLParser
from typing import Any

import msgspec

from fuseline.report.page import PageInputs, Side, SourceNode, render_page
from fuseline.report.page.inputs import Peaks
from fuseline.report.page.render import SCRIPTS
from fuseline.report.records import CompileRecord
from tests.unit.report.records import RECORD

HOSTILE = "</script><img src=x onerror=alert(1)>"


def blobs(page: str) -> dict[str, Any]:
    found = re.findall(r'<script type="application/gzip" id="blob-(\w+)">([^<]*)</script>', page)
    return {name: json.loads(gzip.decompress(base64.b64decode(text))) for name, text in found}


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


def _tags(page: str) -> list[str]:
    parser = _Tags()
    parser.feed(page)
    return parser.tags


def test_everything_is_inside_and_the_same_for_equal_records() -> None:
    page = render_page(PageInputs(Side("tiny", RECORD)))
    assert not re.search(r"<(script|link|img|iframe)[^>]*\s(src|href)=", page)
    assert not re.search(r"(fetch|XMLHttpRequest|import)\s*\(", page.split("blob-main")[1].split("dagre")[0])
    assert page == render_page(PageInputs(Side("tiny", RECORD)))
    assert set(blobs(page)) == {"main"}


def test_names_with_markup_make_no_elements() -> None:
    tame = render_page(PageInputs(Side("x", RECORD, [SourceNode("a", "b")])))
    member = msgspec.structs.replace(RECORD.dispatches[0].members[0], nodes=(HOSTILE,), id=HOSTILE)
    dispatch = msgspec.structs.replace(RECORD.dispatches[0], members=[member], name=HOSTILE)
    record = msgspec.structs.replace(RECORD, model=HOSTILE, dispatches=[dispatch], eliminated={HOSTILE: HOSTILE})
    inputs = PageInputs(Side(HOSTILE, record, [SourceNode(HOSTILE, HOSTILE)]), reasons={HOSTILE: HOSTILE})
    assert _tags(render_page(inputs)) == _tags(tame)
    assert blobs(render_page(inputs))["main"]["sides"][0]["sources"][0]["name"] == HOSTILE


def test_scripts_cannot_end_early() -> None:
    page = render_page(PageInputs(Side("tiny", RECORD)))
    assert page.count("</script>") == len(SCRIPTS) + 1


def test_what_is_read_on_demand_has_a_blob_of_its_own() -> None:
    side = Side("x", RECORD, ir_texts=["%0 = op"], ir={"Conv_0": {"input": [0]}}, assembly={"kernel_0": "ret"})
    found = blobs(render_page(PageInputs(side, side)))
    assert set(found) == {"main", "ir0", "ir1", "assembly0", "assembly1"}
    assert found["ir1"] == {"texts": ["%0 = op"], "nodes": {"Conv_0": {"input": [0]}}}
    assert found["main"]["sides"][1]["assembly"] == ["kernel_0"] and "ret" not in json.dumps(found["main"])


def test_an_empty_record_makes_a_page() -> None:
    found = blobs(render_page(PageInputs(Side("", CompileRecord()))))["main"]
    assert found["sides"][0]["dispatches"] == [] and found["comparison"] is None


def test_measured_and_assumed_figures_are_told_apart() -> None:
    side = Side("x", RECORD, seconds=[1e-3, 2e-3], total_seconds=4e-3, peaks=Peaks(50.0, 16.0, 8.0, measured=True))
    found = blobs(render_page(PageInputs(side)))["main"]["sides"][0]
    assert [one["seconds"] for one in found["dispatches"]] == [1e-3, 2e-3]
    assert found["peaks"] == {
        "flops_per_ns": 50.0,
        "cached_bytes_per_ns": 16.0,
        "memory_bytes_per_ns": 8.0,
        "measured": True,
    }
    other = blobs(render_page(PageInputs(Side("x", RECORD))))["main"]["sides"][0]
    assert [one["seconds"] for one in other["dispatches"]] == [None, None] and other["peaks"] is None
