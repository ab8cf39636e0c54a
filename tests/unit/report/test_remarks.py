"""Remarks: LLVM's YAML layout, JSON lines, and the regex filters."""

from __future__ import annotations

import json

import msgspec
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
        "  - ProducerId: '%Conv_0'",
        "  - ConsumerId: '%Relu_1'",
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
        (RemarkFilter(node="^%Relu"), 2),
        (RemarkFilter(anything="^horizontal$|reduces"), 2),
        (RemarkFilter(anything="%MatMul", rule="horizontal"), 1),
    ],
)
def test_filters_search_with_regular_expressions(keep: RemarkFilter, count: int):
    assert len(jsonl_remarks(RECORD.decisions, keep).splitlines()) == count


def test_a_missed_remark_says_what_would_change_it():
    missed = yaml_remarks(RECORD.decisions, RemarkFilter(verdicts=("missed",)))
    assert "  - Hint: 'let the consumer reduce" in missed
    assert "Hint" not in yaml_remarks(RECORD.decisions, RemarkFilter(verdicts=("fused",)))


def test_control_characters_do_not_break_the_yaml():
    odd = msgspec.structs.replace(RECORD.decisions[0], producer_nodes=("a\nb\x07c",))
    assert "  - Producer: 'a?b?c'" in yaml_remarks([odd])


def test_any_yaml_reader_reads_the_remarks():
    yaml = pytest.importorskip("yaml")

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_multi_constructor(
        "!", lambda loader, suffix, node: {"kind": suffix, **loader.construct_mapping(node, deep=True)}
    )
    read = list(yaml.load_all(yaml_remarks(RECORD.decisions), Loader))
    assert [remark["kind"] for remark in read] == ["Passed", "Missed", "Analysis"]
    assert {"Producer": "Conv_0"} in read[0]["Args"]
