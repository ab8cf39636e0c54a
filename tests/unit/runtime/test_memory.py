"""Raw memory: alignment, addresses, code pages that are never writable and executable at once."""

from __future__ import annotations

import ctypes
import os

import numpy as np
import pytest

from fuseline.errors import FuselineError
from fuseline.runtime import memory
from fuseline.runtime.memory import HUGE_PAGE_BYTES, CodePages, address_of, aligned_empty, map_pages, reserve


@pytest.mark.parametrize("shape", [(), (0,), (3,), (5, 7), (2, 0, 3)])
def test_aligned_empty(shape: tuple[int, ...]) -> None:
    array = aligned_empty(shape, np.dtype(np.float32))
    assert (array.shape, array.dtype) == (shape, np.float32)
    assert address_of(array) % 64 == 0 and array.flags.c_contiguous and array.flags.writeable


def test_both_ways_to_an_address_agree() -> None:
    whole = np.arange(24, dtype=np.int16).reshape(4, 6)
    for array in (whole, whole[1:, 2:], whole.T, whole[::-1], whole[:0]):
        assert address_of(array) == array.ctypes.data == memory._address_by_interface(array)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("count", [0, 1, 4096, HUGE_PAGE_BYTES, 3 * HUGE_PAGE_BYTES + 5])
def test_reserve(count: int) -> None:
    block = reserve(count)
    assert len(block) == count and not block.any()
    assert address_of(block) % (HUGE_PAGE_BYTES if count >= HUGE_PAGE_BYTES else 4096) == 0
    block[:] = 1


@pytest.mark.parametrize("count", [1 << 60, 1 << 70])
def test_what_cannot_be_reserved_is_coded(count: int) -> None:
    for attempt in (lambda: reserve(count), lambda: aligned_empty((count,), np.dtype(np.uint8))):
        with pytest.raises(FuselineError) as caught:
            attempt()
        assert caught.value.code == "E0405"
    with pytest.raises(FuselineError, match="E0405"):
        map_pages(1 << 60)


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="reads /proc/self/maps")
def test_code_is_executable_and_not_writable_and_goes_with_its_object() -> None:
    def rights(address: int) -> str | None:
        with open("/proc/self/maps", encoding="ascii") as file:
            for line in file:
                start, end = (int(part, 16) for part in line.split()[0].split("-"))
                if start <= address < end:
                    return line.split()[1]
        return None

    pages, kept = CodePages(b"\xc3" * 100, []), CodePages(b"\xc3", [])
    kept.keep()
    base, kept_base = pages.base, kept.base
    assert rights(base) == "r-xp"
    del pages, kept
    assert rights(base) != "r-xp" or rights(base) is None
    assert rights(kept_base) == "r-xp"


def test_fixups_are_relative_to_the_base() -> None:
    pages = CodePages(bytes(64), [(8, 16), (56, 0)])
    words = np.frombuffer(ctypes.string_at(pages.base, 64), np.uint64)
    assert [int(word) for word in words[[0, 1, 7]]] == [0, pages.base + 16, pages.base]


@pytest.mark.parametrize("fixup", [(60, 0), (-8, 0), (0, 65), (0, -1)])
def test_fixups_outside_the_code_are_refused(fixup: tuple[int, int]) -> None:
    with pytest.raises(FuselineError, match="E0401"):
        CodePages(bytes(64), [fixup])
