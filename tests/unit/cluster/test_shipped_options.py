"""Arguments that name files are those files, wherever they lie."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fuseline.cluster.jobs import NotPreparedError
from fuseline.cluster.shipped_options import shipped_options
from fuseline.errors import FuselineError
from fuseline.tuning.records import all_records


def test_options_without_files():
    options = {"target": "cpu:avx2", "threads": 2, "plan": None, "rules": ()}
    sent = shipped_options(options)
    assert list(sent.shipments()) == [] and sent.here() == {"target": "cpu:avx2", "threads": 2}
    assert shipped_options({"target": "npu:4x4"}).here() == {"target": "npu:4x4"}


def test_options_with_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for name in ("plan", "a.py", "b.py", "npu.toml", "npu.py"):
        Path(name).write_text(name)
    sent = shipped_options({"plan": "plan", "rules": ["a.py", "b.py"], "target": "null:npu.toml", "dedup": "none"})
    assert len(list(sent.shipments())) == 4
    assert sent.here() == {
        "plan": str(tmp_path / "plan"),
        "rules": [str(tmp_path / "a.py"), str(tmp_path / "b.py")],
        "target": f"null:{tmp_path / 'npu.toml'}",
        "dedup": "none",
    }
    assert shipped_options({"target": "./npu.py:4x4"}).here() == {"target": f"{tmp_path / 'npu.py'}:4x4"}


def test_tuning_records_go_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A file of them, or this user's own; never those of the worker's user."""
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "records").write_text("{}")
    assert shipped_options({"tuned": tmp_path / "records"}).here() == {"tuned": str(tmp_path / "records")}
    own = shipped_options({"tuned": True}).here()["tuned"]
    assert isinstance(own, str) and all_records(Path(own)) == []
    assert shipped_options({"tuned": False}).here() == {}


def test_files_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "plan").write_text("p")
    sent = shipped_options({"plan": tmp_path / "plan"})
    (tmp_path / "plan").unlink()
    with pytest.raises(NotPreparedError):
        sent.here()
    with pytest.raises(FuselineError) as raised:
        shipped_options({"plan": tmp_path / "plan"})
    assert raised.value.code == "E0101"


def test_they_travel(tmp_path: Path):
    (tmp_path / "npu.toml").write_text("")
    sent = shipped_options({"target": f"cpu:{tmp_path / 'npu.toml'}", "shapes": {"n": [1, 4]}})
    assert msgspec.json.decode(msgspec.json.encode(sent), type=type(sent)) == sent
