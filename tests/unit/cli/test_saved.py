"""What `diff` compares: saved statistics and plans as records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fuseline.cli.main import main
from fuseline.cli.saved import any_record
from fuseline.errors import FuselineError

DEEP = "[" * 200_000


def _file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_saved_statistics(tmp_path: Path) -> None:
    saved = {
        "version": 1,
        "command": "stats",
        "model": "m.onnx",
        "graph": "abc",
        "dispatches": 1,
        "flops": 12,
        "dispatch_table": [{"name": "d0", "executable": "e", "root": "pad", "members": [], "flops": 12}],
        "decisions": [],
    }
    record = any_record(_file(tmp_path, "s.json", json.dumps(saved)), {})
    assert (record.model, record.fingerprint, [d.name for d in record.dispatches]) == ("m.onnx", "abc", ["d0"])
    assert record.statistics == {"dispatches": 1, "flops": 12}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", DEEP, '{"dispatch_table": 3}', '{"decisions": [{"rule": 1}]}', '{"dispatch_table": [{}]}'],
)
def test_what_holds_no_statistics(tmp_path: Path, text: str) -> None:
    path = _file(tmp_path, "s.json", text)
    with pytest.raises(FuselineError, match="no statistics") as caught:
        any_record(path, {})
    assert (caught.value.code, caught.value.node) == ("E0501", str(path))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FuselineError, match="no statistics"):
        any_record(tmp_path / "none.json", {})


def test_a_plan_says_which_ops_are_together(tmp_path: Path) -> None:
    text = """version = 1
model = "m"
graph = "g"
force = [["b.1", "a.2"]]
group = [{ops = ["a.2", "b.1"]}, {ops = ["c.3"]}]
"""
    record = any_record(_file(tmp_path, "p.toml", text), {})
    assert [[member.id for member in dispatch.members] for dispatch in record.dispatches] == [["2", "1"], ["3"]]
    assert record.statistics == {"dispatches": 2, "force": [["1", "2"]], "forbid": []}


@pytest.mark.parametrize("text", ["", "version =", "version = 1\nx = " + DEEP[:20_000]])
def test_a_malformed_plan(tmp_path: Path, text: str) -> None:
    with pytest.raises(FuselineError) as caught:
        any_record(_file(tmp_path, "p.toml", text), {})
    assert caught.value.code == "E0701"


def test_an_artifact_of_an_older_format_is_compared_by_its_records(capsys: pytest.CaptureFixture[str]) -> None:
    stored = Path(__file__).parents[1] / "runtime" / "stored"
    record = any_record(stored / "format_9.fuse", {})
    assert record.dispatches and "its records are read alone" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["stats", "explain", "graph"])
def test_what_reads_records_alone_takes_an_artifact_of_an_older_format(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = Path(__file__).parents[1] / "runtime" / "stored" / "format_9.fuse"
    assert main([command, str(stored)]) == 0
    told = capsys.readouterr()
    assert told.out and "its records are read alone" in told.err


def test_an_artifact_without_records_that_can_be_read_is_refused_for_what_it_is(tmp_path: Path) -> None:
    stored = Path(__file__).parents[1] / "runtime" / "stored" / "format_9.fuse"
    (tmp_path / "m.fuse").write_bytes(stored.read_bytes().replace(b'"records"', b'"recOrds"', 1))
    with pytest.raises(FuselineError) as caught:
        any_record(tmp_path / "m.fuse", {})
    assert caught.value.code == "E0402"
