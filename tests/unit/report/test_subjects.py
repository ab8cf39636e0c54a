"""What a user means by a name."""

from __future__ import annotations

import pytest

from fuseline.report.records import (
    CompileRecord,
    Decision,
    DispatchRecord,
    FusionNodeRecord,
    HostOpRecord,
    MemberRecord,
)
from fuseline.report.subjects import Subject, find_subject, suggestions

CONV, RELU, ADD = "convolution.96eabbfb", "elementwise.00c0ffee", "elementwise.12345678"
FIRST = DispatchRecord(
    name="000_convolution",
    executable="ex0",
    root="convolution",
    members=[
        MemberRecord(id=CONV, kind="convolution", role="root", nodes=("Conv_0",)),
        MemberRecord(id=RELU, kind="elementwise", role="epilogue", nodes=("Relu_1",)),
    ],
)
SECOND = DispatchRecord(
    name="001_elementwise",
    executable="ex1",
    root="elementwise",
    members=[MemberRecord(id=ADD, kind="elementwise", role="root", nodes=("Conv_0", "000_convolution"))],
)
RECORD = CompileRecord(
    dispatches=[FIRST, SECOND],
    fusion_nodes={CONV: FusionNodeRecord(kind="convolution", nodes=("Conv_0",))},
    decisions=[
        Decision(
            rule="elementwise-epilogue", verdict="missed", producer="reduction.77777777", consumer=ADD,
            producer_op="reduction", consumer_op="elementwise", producer_nodes=("Sum_4",), consumer_nodes=("Add_5",),
        )
    ],
    host_ops=[HostOpRecord(node="NonZero_2", op_type="NonZero", reason="no lowering")],
    source_nodes=["Conv_0", "Relu_1", "NonZero_2", "Identity_3", "Sum_4"],
    eliminated={"Identity_3": "canonicalize"},
)  # fmt: skip


def _found(name: str) -> Subject:
    found = find_subject(RECORD, name)
    assert found is not None
    return found


def test_a_node_that_became_several_ops_is_in_all_their_dispatches() -> None:
    assert _found("Conv_0") == Subject("Conv_0", frozenset({CONV, ADD}), (FIRST, SECOND))


def test_a_node_that_only_a_decision_names_is_in_no_dispatch() -> None:
    assert _found("Sum_4") == Subject("Sum_4", frozenset({"reduction.77777777"}))


def test_a_node_of_the_host_and_one_that_is_gone() -> None:
    assert _found("NonZero_2").host == RECORD.host_ops[0]
    assert _found("Identity_3") == Subject("Identity_3", eliminated="canonicalize")


@pytest.mark.parametrize("name", [RELU, "00c0ffee"])
def test_a_structural_id_with_and_without_its_kind(name: str) -> None:
    assert _found(name) == Subject(RELU, frozenset({RELU}), (FIRST,))


@pytest.mark.parametrize("name", ["001_elementwise", "1", "01"])
def test_a_dispatch_by_name_and_by_number(name: str) -> None:
    assert _found(name) == Subject("001_elementwise", frozenset({ADD}), (SECOND,), SECOND)


def test_the_model_s_own_names_come_before_ours() -> None:
    assert _found("000_convolution").dispatch is None


@pytest.mark.parametrize("name", ["", "Conv", "conv_0", "2", "-1", "²", "convolution", "convolution."])
def test_a_name_that_nothing_has(name: str) -> None:
    assert find_subject(RECORD, name) is None


def test_names_like_one_that_nothing_has() -> None:
    assert suggestions(RECORD, "CONV") == ["Conv_0", CONV]
    assert suggestions(RECORD, "_", limit=2) == ["Conv_0", "Relu_1"]
    assert suggestions(RECORD, "pool") == []
