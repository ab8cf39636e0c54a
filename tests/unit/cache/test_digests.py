"""Digests of files: the content counts, and is read once while the file system says that it is the same."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from fuseline.cache import digests
from fuseline.cache.digests import file_digest


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were read through."""
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(digests, "GRAIN_SECONDS", 0.0)
    found: list[str] = []
    original = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda file, kind: (found.append(file.name), original(file, kind))[1])
    return found


def _written(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    time.sleep(0.02)  # longer than the grain of the file system's clock
    return hashlib.sha256(content).hexdigest()


def test_an_unchanged_file_is_read_once(tmp_path: Path, read: list[str]):
    path = tmp_path / "model"
    wanted = _written(path, os.urandom(5000))
    assert [file_digest(path) for _ in range(3)] == [wanted] * 3 and len(read) == 1


def test_a_change_that_keeps_size_and_time_is_seen(tmp_path: Path, read: list[str]):
    path = tmp_path / "model"
    _written(path, b"before")
    status = path.stat()
    file_digest(path)
    wanted = _written(path, b"after!")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    time.sleep(0.02)
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert file_digest(path) == wanted and len(read) == 2


def test_a_file_that_changed_a_moment_ago_is_read_each_time(
    tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(digests, "GRAIN_SECONDS", 1000.0)
    wanted = _written(tmp_path / "model", b"new")
    assert [file_digest(tmp_path / "model") for _ in range(2)] == [wanted] * 2 and len(read) == 2


@pytest.mark.parametrize("damage", [b"", b"zz" * 32, b"ab", bytes([255] * 64)])
def test_a_damaged_memory_is_not_believed(damage: bytes, tmp_path: Path, read: list[str]):
    wanted = _written(tmp_path / "model", b"content")
    file_digest(tmp_path / "model")
    (memory,) = (tmp_path / "cache" / "models").iterdir()
    memory.write_bytes(damage)
    assert file_digest(tmp_path / "model") == wanted and len(read) == 2


def test_without_a_place_to_remember_files_are_read(tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "file"))
    wanted = _written(tmp_path / "model", b"content")
    assert [file_digest(tmp_path / "model") for _ in range(2)] == [wanted] * 2 and len(read) == 2
    with pytest.raises(FileNotFoundError):
        file_digest(tmp_path / "absent")
