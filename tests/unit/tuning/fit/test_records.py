"""Records are written whole, read back as they were, and refused where nobody can have measured them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fuseline.errors import FuselineError
from fuseline.tuning.fit.records import ProgramSamples, read_records, write_records
from tests.unit.tuning.fit.measured import program


def test_records_are_read_back(tmp_path: Path):
    path = tmp_path / "deep" / "r.jsonl"
    records = [program("a"), program("b", threads=2, round=1)]
    write_records(path, records)
    assert read_records(path) == records
    assert records[0].key != records[1].key and read_records(tmp_path / "none") == []


def _changed(**fields: object) -> ProgramSamples:
    return msgspec.structs.replace(program("a", 2), **fields)


def _dispatch(**fields: object) -> ProgramSamples:
    record = program("a", 2)
    return _changed(dispatches=(record.dispatches[0], msgspec.structs.replace(record.dispatches[1], **fields)))


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (_changed(version=1), "version 1"), (_changed(threads=0), "0 threads"), (_changed(round=-1), "round -1"),
        (_dispatch(seconds=-1e-6), "seconds"), (_dispatch(seconds=0.0), "seconds"),
        (_dispatch(share=0.0), "one thread"),
        (_dispatch(share=1.5), "one thread"),
        (_dispatch(work={"product": -2.0}), "-2.0 of product"),
        (_dispatch(work={"magic": 2.0}), "unknown kind, magic"),
    ],
)  # fmt: skip
def test_what_nobody_can_have_measured_is_refused_by_line(tmp_path: Path, record: ProgramSamples, why: str):
    path = tmp_path / "r.jsonl"
    write_records(path, [program("fine", 2), record])
    with pytest.raises(FuselineError, match=why) as caught:
        read_records(path)
    assert caught.value.code == "E0501" and caught.value.node == f"{path}:2"


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"model": 3}', b"\xff\xfe"])
def test_what_is_no_record_is_refused_by_line(tmp_path: Path, line: bytes):
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"\n" + line + b"\n")
    with pytest.raises(FuselineError, match="no record") as caught:
        read_records(path)
    assert caught.value.node == f"{path}:2"
