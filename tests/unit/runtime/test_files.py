"""Outputs are whole or absent."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import pytest

from fuseline.errors import FuselineError
from fuseline.runtime.files import write_file, write_files


def _good(file: BinaryIO) -> None:
    file.write(b"whole")


def _bad(file: BinaryIO) -> None:
    file.write(b"half")
    raise ValueError("stopped")


def test_a_file_is_written_into_a_new_folder(tmp_path: Path):
    write_file(tmp_path / "new" / "a", _good)
    assert (tmp_path / "new" / "a").read_bytes() == b"whole"


def test_a_failure_leaves_nothing_and_keeps_the_old(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(ValueError, match="stopped"):
        write_files({tmp_path / "a": _good, tmp_path / "b": _bad})
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_place_that_cannot_be_written_is_E0502(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(FuselineError) as caught:
        write_file(tmp_path / "file" / "below", _good)
    assert caught.value.code == "E0502"


def test_a_pipe_takes_the_bytes_and_stays_a_pipe(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as reader:
        read = reader.submit(pipe.read_bytes)
        write_file(pipe, _good)
        assert read.result(timeout=60) == b"whole"
    assert pipe.is_fifo() and [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no device that is always full")
def test_a_device_stays_one_and_a_full_one_is_E0502(tmp_path: Path):
    for name in ("null", "full"):
        (tmp_path / name).symlink_to(f"/dev/{name}")
    write_file(tmp_path / "null", _good)
    assert (tmp_path / "null").is_char_device()
    with pytest.raises(FuselineError) as caught:
        write_file(tmp_path / "full", _good)
    assert caught.value.code == "E0502" and (tmp_path / "full").is_char_device()
