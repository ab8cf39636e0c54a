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
    assert answer.lines[2].startswith("    to change it: let the consumer reduce along rows")


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


def test_a_decision_without_nodes_shows_its_ids():
    bare = msgspec.structs.replace(RECORD.decisions[0], producer_nodes=(), consumer_nodes=())
    assert "%Conv_0 -> %Relu_1" in decision_line(bare)


def test_several_ops_of_one_node_are_told_apart():
    same = msgspec.structs.replace(RECORD.decisions[0], consumer_nodes=("Conv_0",))
    assert "Conv_0 (convolution) -> Conv_0 (elementwise)" in decision_line(same)


@pytest.mark.parametrize("name", ["main_dispatch_0", "0", "000"])
def test_a_dispatch_is_explained_by_name_or_number(name: str):
    answer = explain_node(RECORD, name)
    assert answer.dispatches == ("main_dispatch_0",)
    assert answer.lines[0] == "main_dispatch_0: root convolution, family convolution, 2 M flops, executable ex0"
    assert "  epilogue  %Relu_1  Relu_1" in answer.lines
    assert "  joined by elementwise-epilogue: 1 edge" in answer.lines
    assert any(line.startswith("  missed     Relu_1 -> MatMul_2") for line in answer.lines)


def test_a_dispatch_without_neighbours_says_so():
    alone = msgspec.structs.replace(RECORD, decisions=RECORD.decisions[:1])
    assert explain_node(alone, "0").lines[-1] == "  no edge to another dispatch"


def test_an_op_is_known_by_its_id_with_and_without_its_kind():
    decision = msgspec.structs.replace(RECORD.decisions[0], producer="convolution.aa", consumer="elementwise.bb")
    record = msgspec.structs.replace(RECORD, decisions=[decision], dispatches=[])
    full, bare = explain_node(record, "convolution.aa"), explain_node(record, "aa")
    assert full == bare
    assert full.decisions == (decision,)


def test_two_dispatches_are_asked_about_like_two_nodes():
    assert explain_edge(RECORD, "0", "1").decisions == tuple(RECORD.decisions[1:])


def test_a_node_in_several_dispatches_is_placed_in_each():
    dispatches = [msgspec.structs.replace(RECORD.dispatches[0], name=name) for name in ("a", "b")]
    lines = explain_node(msgspec.structs.replace(RECORD, dispatches=dispatches), "Conv_0").lines
    assert [line.split(" (")[0] for line in lines[:2]] == ["Conv_0 runs in a", "Conv_0 runs in b"]


def test_what_stayed_apart_on_the_way_is_told_with_what_would_change_it():
    first = msgspec.structs.replace(RECORD.decisions[1], consumer="%Add", consumer_nodes=("Add",))
    second = msgspec.structs.replace(
        RECORD.decisions[0],
        producer="%Add",
        producer_nodes=("Add",),
        consumer="%MatMul_2",
        consumer_nodes=("MatMul_2",),
    )
    answer = explain_edge(msgspec.structs.replace(RECORD, decisions=[first, second]), "MatMul_2", "Relu_1")
    assert "  on the way from one to the other, 1 edge of 2 stayed apart:" in answer.lines
    assert answer.decisions == (first, second)
    assert answer.lines[-1].startswith("    to change it: ")


def test_a_superseded_edge_can_be_forced():
    assert "    to change it: force the two together in a plan" in "\n".join(explain_node(RECORD, "MatMul_2").lines)
