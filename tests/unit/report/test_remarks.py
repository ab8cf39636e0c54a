"""Remarks: LLVM's YAML layout, JSON lines, and the regex filters."""

from __future__ import annotations

import json

import pytest

from fuseline.report.remarks import RemarkFilter, jsonl_remarks, yaml_remarks
from tests.unit.report.records import RECORD


def test_yaml_has_llvms_layout():
    first = yaml_remarks(RECORD.decisions).split("...\n")[0]
    assert first.splitlines() == [
        "--- !Passed",
        "Pass:            'elementwise-epilogue'",
        "Name:            'fused'",
        "Function:        'main_dispatch_0'",
        "Args:",
        "  - Producer: 'Conv_0'",
        "  - Consumer: 'Relu_1'",
        "  - gain: '2048'",
    ]


def test_quotes_are_doubled_as_yaml_wants():
    assert "'Conv_0''s group <changed> & grew'" in yaml_remarks(RECORD.decisions)


def test_jsonl_is_one_object_a_line():
    lines = [json.loads(line) for line in jsonl_remarks(RECORD.decisions).splitlines()]
    assert [line["kind"] for line in lines] == ["passed", "missed", "analysis"]
    assert lines[1]["args"]["bytes_saved"] == 1_200_000


@pytest.mark.parametrize(
    ("keep", "count"),
    [
        (RemarkFilter(rule="^horizontal$"), 1),
        (RemarkFilter(code="reduces"), 1),
        (RemarkFilter(node="^Relu"), 2),
        (RemarkFilter(verdicts=("fused",)), 1),
        (RemarkFilter(rule="epilogue", node="MatMul"), 1),
        (RemarkFilter(node="nothing"), 0),
    ],
)
def test_filters_search_with_regular_expressions(keep: RemarkFilter, count: int):
    assert len(jsonl_remarks(RECORD.decisions, keep).splitlines()) == count
