"""What the finished program still quantises by itself: nodes on the host, and dispatches of nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fuseline.passes.schedule.quantization_left import complete_quantization
from fuseline.report.records import (
    CompileRecord,
    Decision,
    DispatchRecord,
    HostOpRecord,
    MemberRecord,
    QuantizationRecord,
    Verdict,
)

REASON = "a type that is not native"
ALONE = "nothing beside it that it could be fused with"


def _dispatch(*members: tuple[str, ...]) -> DispatchRecord:
    """A dispatch whose members came from these nodes; the id of each is `%` and its nodes."""
    made = [MemberRecord(id="%" + "".join(nodes), kind="elementwise", role="member", nodes=nodes) for nodes in members]
    return DispatchRecord(name="d", executable="e", root="elementwise", members=made)


def _edge(producer: str, consumer: str, code: str, verdict: Verdict = "missed") -> Decision:
    return Decision(
        rule="elementwise-epilogue",
        verdict=verdict,
        producer=f"%{producer}",
        consumer=f"%{consumer}",
        producer_op="elementwise",
        consumer_op="elementwise",
        producer_nodes=(producer,),
        consumer_nodes=(consumer,),
        code=code,
    )


def _record(*dispatches: DispatchRecord, decisions: Sequence[Decision] = ()) -> CompileRecord:
    return CompileRecord(quantize_nodes=["q", "dq"], dispatches=list(dispatches), decisions=list(decisions))


def test_only_nodes_that_quantise_are_reported_from_the_host():
    record = CompileRecord(quantize_nodes=["q"])
    record.host_ops = [HostOpRecord(node=node, op_type="Any", reason=REASON) for node in ("other", "q")]
    assert complete_quantization(record) == {"qdq-host": 1}
    assert record.quantization == [QuantizationRecord(nodes=("q",), code="qdq-host", detail=REASON)]


def test_what_the_host_dequantises_names_its_readers():
    edges = [_edge("q", "b", "host-op"), _edge("q", "a", "host-op"), _edge("c", "q", "host-op")]
    record = _record(decisions=[*edges, _edge("q", "d", "", "fused")])
    record.host_ops = [HostOpRecord(node="q", op_type="Any", reason=REASON)]
    complete_quantization(record)
    assert [one.readers for one in record.quantization] == [("a", "b")]


@pytest.mark.parametrize(
    ("members", "nodes"),
    [
        ([("q",)], ("q",)),
        ([("q",), ("dq",)], ("dq", "q")),
        ([("q",), ()], ("q",)),
        ([("q",), ("relu",)], None),
        ([("q", "relu")], None),
        ([("relu",)], None),
        ([()], None),
    ],
)
def test_a_dispatch_of_nothing_else_is_alone(members: list[tuple[str, ...]], nodes: tuple[str, ...] | None):
    record = _record(_dispatch(*members))
    expected = [QuantizationRecord(nodes=nodes, code="qdq-no-consumer", detail=ALONE)] if nodes is not None else []
    assert complete_quantization(record) == ({"qdq-no-consumer": 1} if nodes is not None else {})
    assert record.quantization == expected


def test_missed_edges_around_it_say_who_reads_it_and_why():
    edges = [
        _edge("dq", "relu", "scratch"),
        _edge("dq", "exp", "cycle"),
        _edge("abs", "q", "scratch"),
        _edge("dq", "neg", "fused", "fused"),
        _edge("dq", "sin", "other", "superseded"),
        _edge("q", "dq", "inside"),
        _edge("abs", "relu", "elsewhere"),
    ]
    record = _record(_dispatch(("q",), ("dq",)), decisions=edges)
    complete_quantization(record)
    (found,) = record.quantization
    assert (found.readers, found.detail) == (("exp", "relu"), "fusion refused: scratch, cycle")


def test_what_is_known_is_counted_and_not_said_again():
    known = QuantizationRecord(nodes=("x",), code="qdq-axis", detail="d")
    record = _record(_dispatch(("q",)), _dispatch(("dq",)))
    record.quantization.append(known)
    counts = {"qdq-axis": 1, "qdq-no-consumer": 2}
    assert complete_quantization(record) == counts
    assert complete_quantization(record) == counts
    assert record.quantization[0] == known and len(record.quantization) == 3


def test_a_program_without_quantisation_has_no_counts():
    assert complete_quantization(CompileRecord(dispatches=[_dispatch(("relu",))])) == {}
