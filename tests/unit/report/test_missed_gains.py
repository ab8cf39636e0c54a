"""Missed edges by what they cost."""

from __future__ import annotations

import msgspec
import pytest

from fuseline.report.missed_gains import missed_gains
from fuseline.report.records import CompileRecord, Decision
from tests.unit.report.records import RECORD


def _record(*decisions: Decision, shape: str = "4x8_f16") -> CompileRecord:
    first = msgspec.structs.replace(RECORD.dispatches[0], shape=shape)
    return msgspec.structs.replace(RECORD, dispatches=[first, RECORD.dispatches[1]], decisions=list(decisions))


def _missed(producer: str, consumer: str, **fields: object) -> Decision:
    given = {"verdict": "missed", "code": "two-roots", "rule": "root-chain", **fields}
    return Decision(producer=producer, consumer=consumer, producer_op="a", consumer_op="b", **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shape", "stored"),
    [("4x8_f16", 64), ("1x3x5_f32", 60), ("7_i64", 56), ("3xD_i8", 3), ("2_bf16", 4), ("", 8), ("5_index", 40)],
)
def test_what_a_store_and_a_load_take(shape: str, stored: int) -> None:
    (gain,) = missed_gains(_record(_missed("%Relu_1", "%MatMul_2"), shape=shape), bytes_per_ns=2.0, launch_ns=10.0)
    assert gain.bytes == stored and gain.saved_ns == 2 * stored / 2.0 + 10.0 and gain.net_ns is None


def test_edges_inside_a_dispatch_arms_and_others_verdicts_are_left_out() -> None:
    record = _record(
        _missed("%Conv_0", "%Relu_1"), _missed("%Relu_1", "%MatMul_2", arms=True), _missed("%x", "%MatMul_2"),
        _missed("%Relu_1", "%MatMul_2", verdict="superseded"),
    )  # fmt: skip
    assert missed_gains(record, bytes_per_ns=1.0, launch_ns=1.0) == []


def test_two_edges_between_the_same_dispatches_cost_once() -> None:
    weighed = {"predicted_loss_ns": 5.0}
    record = _record(
        _missed("%Relu_1", "%MatMul_2", code="unprofitable", numbers=weighed), _missed("%Conv_0", "%MatMul_2")
    )
    (gain,) = missed_gains(record, bytes_per_ns=1.0, launch_ns=1.0)
    assert gain.count == 1 and gain.net_ns == -5.0 and gain.to_change
    assert missed_gains(record, bytes_per_ns=1.0, launch_ns=1.0, limit=0) == []
