"""Files that one descriptor holds at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fuseline.cache.file_lock import locks

pytest.importorskip("fcntl")


def test_a_file_is_held_until_it_is_closed(tmp_path: Path):
    path = tmp_path / "held"
    path.touch()
    first, second = (os.open(path, os.O_RDONLY) for _ in range(2))
    assert locks(first) and not locks(second) and not locks(second)
    assert locks(first)  # it holds it already
    os.close(first)
    assert locks(second)
    os.close(second)


def test_what_is_not_open_cannot_be_locked(tmp_path: Path):
    path = tmp_path / "closed"
    path.touch()
    number = os.open(path, os.O_RDONLY)
    os.close(number)
    with pytest.raises(OSError, match="descriptor"):
        locks(number)
