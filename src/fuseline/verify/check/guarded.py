"""A launch in a process of its own, on copies of its buffers that lie between pages which may not be touched.

    [no access] operand | [no access]      once with the buffer's end, once with its start at the border

Scratch is such a buffer, too.

It says of one run what the bounds checker cannot show of all: that no access was outside.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fuseline.verify.check.native import NativeCode, Numbers

PAGE = mmap.PAGESIZE
_ALIGNMENT = 64  # what code asks of constants

Bytes = NDArray[np.uint8]


def stays_inside(code: NativeCode, kernel: int, buffers: Sequence[Bytes], numbers: Numbers, scratch_bytes: int) -> bool:
    """Whether the code at offset `kernel` touches nothing beside `buffers` (its bindings as bytes, which stay as they
    are) and its scratch."""
    scratch = np.full(-(-scratch_bytes // _ALIGNMENT) * _ALIGNMENT, 0xFF, np.uint8)
    return all(
        _ended_well(lambda at_end=at_end: _run(code, kernel, (*buffers, scratch), numbers, at_end))
        for at_end in (True, False)
    )


def _ended_well(work: Callable[[], object]) -> bool:
    child = os.fork()
    if child == 0:
        done = 1
        try:
            faulthandler.disable()  # that it ends is an answer
            work()
            done = 0
        finally:
            os._exit(done)
    return os.waitpid(child, 0)[1] == 0


def _run(code: NativeCode, kernel: int, buffers: Sequence[Bytes], numbers: Numbers, at_end: bool) -> None:
    """`buffers`: the last one is scratch."""
    guards = [_guarded(buffer, at_end) for buffer in buffers]
    *places, scratch = (address for _, address in guards)
    code.call(kernel, places, numbers, scratch)


def _guarded(buffer: Bytes, at_end: bool) -> tuple[mmap.mmap, int]:
    """Memory with a copy of `buffer`, and where that begins; its end is as near to the border as alignment lets it."""
    pages = -(-max(buffer.size, 1) // PAGE)
    memory = mmap.mmap(-1, (pages + 2) * PAGE)
    view = np.frombuffer(memory, np.uint8)
    start = view.ctypes.data
    free = pages * PAGE - buffer.size
    shift = PAGE + (free - free % _gap(buffer.size) if at_end else 0)
    view[shift : shift + buffer.size] = buffer
    libc = ctypes.CDLL(None)
    for page in (start, start + (pages + 1) * PAGE):
        if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0):
            raise OSError("pages cannot be protected")
    return memory, start + shift


def _gap(size: int) -> int:
    """Alignment of a buffer of so many bytes: that of vectors for whole ones, else that of the widest element."""
    return _ALIGNMENT if size % _ALIGNMENT == 0 else 8 if size % 8 == 0 else 1


def copies(places: Sequence[int], lengths: Sequence[int]) -> list[Bytes]:
    """The bytes at these addresses."""
    return [
        np.frombuffer(ctypes.string_at(place, length), np.uint8) for place, length in zip(places, lengths, strict=True)
    ]
