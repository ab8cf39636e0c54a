"""Ops and edges of the fusion graph."""

from __future__ import annotations

import msgspec

from fuseline.report.records import FusionNodeRecord
from fuseline.report.viewers.fusion_graph import edges_of, facts_of, ops_of, why
from tests.unit.report.records import RECORD


def test_ops_without_a_dispatch_come_last() -> None:
    nodes = {
        "%x": FusionNodeRecord(kind="copy", loops=("4",)),
        "%Conv_0": FusionNodeRecord(kind="convolution", loops=("8", "3")),
    }
    ops = ops_of(msgspec.structs.replace(RECORD, fusion_nodes=nodes))
    assert [op.id for op in ops] == ["%Conv_0", "%Relu_1", "%MatMul_2", "%x"]
    assert ops[0].loops == ("8", "3") and ops[-1].dispatch is None and ops[0].role == "root"


def test_edges_to_what_is_not_there_are_left_out() -> None:
    found = list(edges_of(RECORD, ops_of(RECORD)[:2]))
    assert [(one.producer, one.consumer) for one in found] == [("%Conv_0", "%Relu_1")]


def test_reasons_and_facts() -> None:
    fused, missed = RECORD.decisions[:2]
    assert why(fused).startswith("fused [elementwise-epilogue]") and "To change it" not in why(fused)
    assert "consumer-reduces" in why(missed) and "To change it" in why(missed)
    assert facts_of(RECORD.dispatches[0])["flops"] == "2000000"
