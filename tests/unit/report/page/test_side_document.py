"""The document of one compile names every op, dispatch and decision once."""

from __future__ import annotations

import msgspec

import fuseline
from fuseline.report.page import Side
from fuseline.report.page.side_document import side_document
from fuseline.report.records import TransientRecord
from tests.small_models import attention
from tests.unit.report.records import RECORD


def test_a_hand_made_record() -> None:
    transients = [TransientRecord(offset=64, bytes=128, first=0, last=2, dispatch="main_dispatch_0")]
    found = side_document(Side("tiny", msgspec.structs.replace(RECORD, transients=transients)))
    first = found["dispatches"][0]
    assert first["members"] == [["%Conv_0", "root"], ["%Relu_1", "epilogue"]] and first["nodes"] == ["Conv_0", "Relu_1"]
    assert found["ops"]["%MatMul_2"]["kind"] == "contraction"
    assert found["memory"]["transients"] == [(64, 128, 0, 2, "main_dispatch_0", False)]
    assert len(found["decisions"]) == len(RECORD.decisions)


def test_a_compile() -> None:
    record = fuseline.compile(attention(2, 5), threads=1, cache=False).record
    found = side_document(Side("attention", record))
    homes = {id for dispatch in found["dispatches"] for id, _ in dispatch["members"]}
    assert homes <= found["ops"].keys()
    ends = {end for decision in found["decisions"] for end in (decision["producer"], decision["consumer"])}
    assert ends <= found["ops"].keys()
    assert {number for group in found["groups"] for number in group["edges"]} == set(range(len(record.decisions)))
    assert msgspec.json.decode(msgspec.json.encode(found))["threads"] == 1
