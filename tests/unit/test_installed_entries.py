"""Entry points are read once, and again where packages come or go."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuseline import installed_entries
from fuseline.installed_entries import entry_points

GROUP = "fuseline.tests"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The groups that were read."""
    seen: list[str] = []
    read = installed_entries.read_entry_points

    def counted(*, group: str) -> object:
        seen.append(group)
        return read(group=group)

    monkeypatch.setattr(installed_entries, "read_entry_points", counted)
    yield seen


def _install(site: Path, name: str) -> Path:
    info = site / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {name}\n")
    return info


def _names() -> list[str]:
    return sorted(entry.name for entry in entry_points(GROUP))


def test_read_once(reads: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    _install(tmp_path, "one")
    assert _names() == _names() == ["one"]
    assert reads == [GROUP]
    assert list(entry_points("fuseline.tests.others")) == []


def test_packages_that_come_and_go_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _names()
    monkeypatch.syspath_prepend(tmp_path)
    assert _names() == before
    infos = {name: _install(tmp_path, name) for name in ("one", "two")}
    assert _names() == ["one", "two"]
    shutil.rmtree(infos["one"])
    assert _names() == ["two"]
    monkeypatch.syspath_prepend(tmp_path / "nowhere")
    assert _names() == ["two"]
    monkeypatch.undo()
    assert _names() == before
