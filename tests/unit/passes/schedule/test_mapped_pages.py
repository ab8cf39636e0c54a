"""Pages of files are given back and hold what they held; memory that is nobody else's is left alone."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest

from fuseline.passes.schedule.mapped_pages import release_pages

COUNT = 3 << 20


def _resident_file_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssFile")) << 10


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel does not say what is resident")
def test_pages_of_a_file_leave_and_come_back(tmp_path: Path):
    drawn = np.random.default_rng().integers(0, 256, 4 * COUNT, np.uint8)
    (tmp_path / "w").write_bytes(drawn.tobytes())
    with (tmp_path / "w").open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    weights = np.frombuffer(mapped, np.int32, offset=20)[3:].reshape(-1, 4).T
    total = weights.sum(dtype=np.int64)
    before = _resident_file_bytes()
    release_pages(weights)
    assert _resident_file_bytes() < before - COUNT
    assert weights.sum(dtype=np.int64) == total
    np.testing.assert_array_equal(np.frombuffer(mapped, np.uint8), drawn)


def test_memory_of_our_own_keeps_its_content(tmp_path: Path):
    anonymous = np.frombuffer(mmap.mmap(-1, COUNT), np.uint8)
    (tmp_path / "w").write_bytes(bytes(COUNT))
    with (tmp_path / "w").open("rb") as file:
        private = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), np.uint8)
    for array in (anonymous, private, np.empty(COUNT, np.uint8)):
        array[:] = drawn = np.random.default_rng().integers(0, 256, COUNT, np.uint8)
        release_pages(array[7:].reshape(-1))
        np.testing.assert_array_equal(array, drawn)


def test_empty_arrays_have_no_pages():
    release_pages(np.empty((0, 3), np.float32))
