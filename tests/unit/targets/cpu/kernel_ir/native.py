"""Kernels run natively, with buffers beside pages that may not be touched."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from fuseline.targets.cpu.isa import Machine
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.kernel_ir.types import Kernel
from fuseline.targets.cpu.link.compile import emit_object

PAGE = mmap.PAGESIZE
_LIBC = ctypes.CDLL(None, use_errno=True)
_ENGINES: list[Any] = []
_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


class Guarded:
    """An array with an unreadable page right behind it, or right before it."""

    def __init__(self, shape: Sequence[int], dtype: Any, *, at_end: bool) -> None:
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        pages = -(-max(size, 1) // PAGE)
        self.memory = mmap.mmap(-1, (pages + 2) * PAGE)
        view = np.frombuffer(self.memory, np.uint8)
        start = view.ctypes.data
        for page in (start, start + (pages + 1) * PAGE):
            assert _LIBC.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0) == 0
        offset = PAGE * (pages + 1) - size if at_end else PAGE
        self.array: NDArray[Any] = view[offset : offset + size].view(dtype).reshape(shape)


def native(kernel: Kernel, isa: Machine) -> Callable[..., None]:
    """The kernel as a function of bindings, sizes, begin, end, scratch."""
    code = emit_object(print_llvm([kernel], isa), isa)
    target = llvm.Target.from_triple(isa.triple)
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(""), target.create_target_machine(cpu=isa.cpu, features=",".join(isa.features), opt=2)
    )
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _ENGINES.append(engine)
    return _SIGNATURE(engine.get_function_address(kernel.symbol))


def call(
    kernel: Kernel,
    isa: Machine,
    arrays: Sequence[NDArray[Any]],
    sizes: Sequence[int] = (),
    begin: int = 0,
    end: int = 1,
) -> None:
    """Run `kernel` on `arrays` in place, scratch full of NaN."""
    pointers = (ctypes.c_void_p * max(1, len(arrays)))(*(a.ctypes.data for a in arrays))
    numbers = (ctypes.c_int64 * max(1, len(sizes)))(*sizes)
    scratch = Guarded([-(-kernel.scratch_bytes // 64) * 64], np.uint8, at_end=True)
    scratch.array[...] = 0xFF
    native(kernel, isa)(pointers, numbers, begin, end, scratch.array.ctypes.data)
