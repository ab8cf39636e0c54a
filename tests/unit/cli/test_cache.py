"""`fuseline cache`: what is there, where, and away with it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fuseline.cache.folder import private_folder
from fuseline.cli.cache import cache


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("FUSELINE_NO_CACHE", "")
    (private_folder("objects") / "a").write_bytes(b"x" * 300)
    (private_folder("programs") / "b.fuse").write_bytes(b"x" * 70_000)


def _ran(*arguments: str) -> str:
    answer = CliRunner().invoke(cache, arguments)
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_info_counts_files_and_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    rows = {
        line.split()[0]: line.split()[-2:] for line in _ran().splitlines() if line.startswith(("objects", "progra"))
    }
    assert rows == {"objects": ["1", "300B"], "programs": ["70", "kB"]} and str(tmp_path) in _ran("info")
    found = json.loads(_ran("info", "--json"))
    assert found["bytes"] == 70_300 and found["kinds"]["programs"] == {"files": 1, "bytes": 70_000}
    assert found["limit"] == 5 << 30 and found["off"] == []
    monkeypatch.setenv("FUSELINE_NO_CACHE", "programs")
    assert json.loads(_ran("--json"))["off"] == ["programs", "models"] and "FUSELINE_NO_CACHE" in _ran()
    monkeypatch.setenv("FUSELINE_NO_CACHE", "")
    monkeypatch.setenv("FUSELINE_CACHE_SIZE", "1k")
    assert "more than the limit" in _ran()


def test_path_and_clear(tmp_path: Path):
    assert _ran("path").strip() == str(tmp_path) and json.loads(_ran("path", "--json"))["path"] == str(tmp_path)
    assert json.loads(_ran("clear", "--json"))["bytes_dropped"] == 70_300
    assert "0 files dropped" in _ran("clear")


def test_an_unknown_action_is_usage():
    assert CliRunner().invoke(cache, ["burn"]).exit_code == 2
