"""Pages of model files: given back once their weights are packed, so that a compile never holds the weights twice.

ndarray -> .. -> memoryview -> mmap (read-only)      its pages leave this process and stay in the system's cache
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray


def release_pages(array: NDArray[Any]) -> None:
    """Give back the memory of the pages that `array` lies on, where they are those of a file that is mapped read-only:
    they are read again if anybody asks. Other arrays stay as they are."""
    mapped = _mapped(array)
    if mapped is None or not array.nbytes or not hasattr(mmap, "MADV_DONTNEED"):
        return
    low, high = np.lib.array_utils.byte_bounds(array)
    base, _ = np.lib.array_utils.byte_bounds(np.frombuffer(mapped, np.uint8))
    start = (low - base) // mmap.PAGESIZE * mmap.PAGESIZE
    with suppress(OSError, ValueError):  # advice: a system that does not take it only keeps the pages
        mapped.madvise(mmap.MADV_DONTNEED, start, high - base - start)


def _mapped(holder: object) -> mmap.mmap | None:
    """The read-only mapping behind an array, or behind what holds its memory: that of a file, for an anonymous one
    could hold nothing."""
    if isinstance(holder, mmap.mmap):
        return holder if memoryview(holder).readonly else None
    if isinstance(holder, np.ndarray):
        return _mapped(cast("Any", holder).base)
    return _mapped(holder.obj) if isinstance(holder, memoryview) else None
