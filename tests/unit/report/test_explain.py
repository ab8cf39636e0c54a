"""Explanations are read from the records alone: a small hand-made record with every verdict."""

from __future__ import annotations

import msgspec
import pytest

from fuseline.report.explain import decision_line, explain_edge, explain_model, explain_node, why_not_fused
from tests.unit.report.records import RECORD


def test_a_fused_edge_names_the_shared_dispatch():
    answer = explain_edge(RECORD, "Conv_0", "Relu_1")
    assert answer.lines[0] == "Conv_0 and Relu_1 share main_dispatch_0"
    assert "[elementwise-epilogue]" in answer.lines[1]


def test_a_missed_edge_says_why_with_numbers():
    answer = explain_edge(RECORD, "Relu_1", "MatMul_2")
    assert answer.lines[0].endswith("do not share a dispatch")
    assert "consumer-reduces: an epilogue is all-parallel (bytes_saved 1.2 M)" in answer.lines[1]
    assert "would fuse with: a consumer that is all-parallel" in answer.lines[2]


def test_the_order_of_the_two_names_does_not_matter():
    assert explain_edge(RECORD, "MatMul_2", "Relu_1").decisions == explain_edge(RECORD, "Relu_1", "MatMul_2").decisions


def test_nodes_without_a_common_candidate_are_placed():
    answer = explain_edge(RECORD, "Conv_0", "Dropout_3")
    assert "no candidate joined them directly; Conv_0 runs in main_dispatch_0" in answer.lines[1]


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ("Conv_0", "Conv_0 runs in main_dispatch_0 (root convolution) with Relu_1"),
        ("MatMul_2", "MatMul_2 runs in main_dispatch_1 (root contraction), alone"),
        ("Dropout_3", "Dropout_3 was eliminated by fold-constants"),
        ("NonZero_4", "NonZero_4 is a host op (NonZero): its result's shape depends on the data"),
    ],
)
def test_every_node_has_a_place(node: str, text: str):
    assert explain_node(RECORD, node).lines[0] == text


def test_an_unknown_node_gets_suggestions():
    answer = explain_node(RECORD, "relu")
    assert not answer.found
    assert answer.lines == ("no node is called relu", "did you mean Relu_1?")


def test_the_model_summary_counts_verdicts_reasons_and_eliminations():
    text = "\n".join(explain_model(RECORD).lines)
    assert "2 dispatches from 5 source nodes" in text
    assert "missed for consumer-reduces: 1" in text
    assert "eliminated by fold-constants: 1 node" in text
    assert "host op NonZero_4" in text


def test_why_not_fused_shows_one_example_for_each_reason():
    assert [line.split(",")[0] for line in why_not_fused(RECORD)] == ["consumer-reduces"]


def test_a_decision_without_nodes_shows_its_ops():
    bare = msgspec.structs.replace(RECORD.decisions[0], producer_nodes=(), consumer_nodes=())
    assert "convolution -> elementwise" in decision_line(bare)
