"""Raw memory for the runtime: addresses of arrays, aligned and huge-page buffers, and code pages. Sizes in bytes."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.errors import FuselineError
from fuseline.runtime.abi import ALIGNMENT

Bytes = NDArray[np.uint8]

HUGE_PAGE_BYTES = 2 << 20

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.mmap.restype = ctypes.c_void_p


def libc_address(name: str) -> int:
    """Address of a libc function, 0 where this libc has none of that name."""
    function = getattr(_libc, name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


def _address_by_interface(array: NDArray[Any]) -> int:
    return array.__array_interface__["data"][0]


def _address_by_layout(array: NDArray[Any]) -> int:
    return _POINTER(id(array) + _HEAD).value or 0


_POINTER: Callable[[int], ctypes.c_void_p] = ctypes.c_void_p.from_address
_HEAD = object.__basicsize__


def _choose_address_of() -> Callable[[NDArray[Any]], int]:
    """Reading the data pointer that follows the object head (public layout of `PyArrayObject`) takes a tenth of the
    time; proved at import."""
    probe = np.arange(8, dtype=np.float32)[3:]
    if sys.implementation.name == "cpython" and _address_by_layout(probe) == _address_by_interface(probe):
        return _address_by_layout
    return _address_by_interface


address_of: Callable[[NDArray[Any]], int] = _choose_address_of()
"""Address of an array's first element (bytes)."""


def aligned_empty(shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """A fresh uninitialised C-contiguous array whose first element is 64-byte aligned; raises FuselineError (E0405)
    without memory."""
    count = dtype.itemsize
    for size in shape:
        count *= size
    try:
        raw: Bytes = np.empty(count + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError) as error:  # ValueError: more than an address can say
        raise no_memory(count) from error
    return np.ndarray(shape, dtype, raw, -address_of(raw) % ALIGNMENT)


def reserve(count: int) -> Bytes:
    """`count` zeroed bytes that start on a huge-page boundary, backed by huge pages where the system grants them.

    Pages are only taken when touched. Raises FuselineError (E0405) where the address space cannot be had.
    """
    huge = count >= HUGE_PAGE_BYTES
    slack = HUGE_PAGE_BYTES if huge else mmap.PAGESIZE
    try:
        block = mmap.mmap(-1, count + slack, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError, ValueError) as error:
        raise no_memory(count) from error
    if huge and hasattr(mmap, "MADV_HUGEPAGE"):
        _advise(block, mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(block, np.uint8)
    start = -address_of(whole) % slack
    return whole[start : start + count]


def _advise(block: mmap.mmap, advice: int) -> None:
    try:
        block.madvise(advice)
    except OSError:  # a kernel without transparent huge pages: ordinary pages do
        return


def no_memory(count: int) -> FuselineError:
    """The error for memory that cannot be had."""
    return FuselineError(
        "E0405",
        f"{count} bytes of memory cannot be reserved",
        hint="run with smaller sizes, or bound them when compiling",
    )


def map_pages(count: int) -> int:
    """Address of `count` fresh zeroed bytes of the process's own, which nothing unmaps: not even the end of the
    interpreter, at which native threads may still be using them. Raises FuselineError (E0405)."""
    address = _libc.mmap(None, count, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if address is None or address == ctypes.c_void_p(-1).value:
        raise no_memory(count)
    return int(address)


class CodePages:
    """An image mapped for execution at `base`: written once, then made read-only and executable.

    It is unmapped when the object goes, unless `keep` was called. Raises FuselineError: E0401 for a fixup outside the
    code, E0405 where the system gives no memory or does not let it be executed.
    """

    def __init__(self, code: bytes, fixups: Sequence[tuple[int, int]]) -> None:
        self._length, self._kept = max(len(code), 1), False
        self.base = map_pages(self._length)
        memory = bytearray(code)
        for offset, target in fixups:
            if not (0 <= offset <= len(code) - 8 and 0 <= target <= len(code)):
                raise FuselineError("E0401", f"word at {offset} or its target {target} lies outside the code")
            memory[offset : offset + 8] = (self.base + target).to_bytes(8, "little")
        ctypes.memmove(self.base, bytes(memory), len(memory))
        if _libc.mprotect(self.base, self._length, mmap.PROT_READ | mmap.PROT_EXEC):
            raise FuselineError(
                "E0405",
                "code pages cannot be made executable",
                hint="the system forbids new executable memory to this process",
            )

    def keep(self) -> None:
        """Never unmap: threads will run this code until the process ends."""
        self._kept = True

    def __del__(self) -> None:
        if not getattr(self, "_kept", True) and hasattr(self, "base"):
            _libc.munmap(self.base, self._length)
