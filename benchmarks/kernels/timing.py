"""Native calls, the machine's peak, and interleaved timing."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from fuseline.ir import dim as d
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.family import Family, Plan
from fuseline.targets.cpu.families.window.family import WindowFamily
from fuseline.targets.cpu.families.winograd.family import WinogradFamily
from fuseline.targets.cpu.isa import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.kernel_ir.types import Kernel
from fuseline.targets.cpu.link.compile import emit_object
from fuseline.targets.target import Refusal
from fuseline.weight_layouts import transformed

from .cases import Array, Case

_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
_engines: list[Any] = []


def load(kernel: Kernel, isa: Machine) -> Callable[..., None]:
    """The kernel as a function of bindings, sizes, begin, end, scratch."""
    code = emit_object(print_llvm([kernel], isa), isa)
    target = llvm.Target.from_triple(isa.triple).create_target_machine(
        cpu=isa.cpu, features=",".join(isa.features), opt=2
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return _SIGNATURE(engine.get_function_address(kernel.symbol))


def aligned(array: NDArray[Any]) -> Array:
    """A copy on a 64-byte boundary."""
    raw = np.empty(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    out = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    out[...] = array
    return out


def plan(case: Case, isa: Machine) -> tuple[Any, Plan]:
    """The first family that takes the case, and its plan."""
    for family in (ContractionFamily(), WinogradFamily(), WindowFamily(), ConvolutionFamily()):
        found = family.accepts(case.view, isa)
        if not isinstance(found, Refusal):
            return family, found
    raise ValueError(f"no family takes {case.name}")


class Compiled:
    """A case compiled; `call()` runs the whole grid on this thread. `emit_seconds` is the time the Python took."""

    def __init__(self, case: Case, isa: Machine, chosen: tuple[Family, Plan] | None = None) -> None:
        start = time.perf_counter()
        family, self.plan = chosen or plan(case, isa)
        builder = KernelBuilder("kernel", isa)
        family.emit(self.plan, builder)
        kernel = builder.finish()
        self.emit_seconds = time.perf_counter() - start
        self.text_bytes = len(print_llvm([kernel], isa))
        start = time.perf_counter()
        self.function = load(kernel, isa)
        self.compile_seconds = time.perf_counter() - start
        self.arrays = [aligned(self._laid_out(i, array)) for i, array in enumerate(case.arrays)]
        shape = [int(str(n)) for n in case.view.shapes.dims(case.view.results[0])]
        self.result = aligned(np.zeros(shape, np.float32))
        self.scratch = aligned(np.zeros(kernel.scratch_bytes + 64, np.uint8))
        pointers = [array.ctypes.data for array in (*self.arrays, self.result)]
        self.pointers = (ctypes.c_void_p * len(pointers))(*pointers)
        self.workgroups = d.evaluate(self.plan.workgroups, {})

    def _laid_out(self, position: int, array: Array) -> Array:
        layout = self.plan.constant_layouts.get(position)
        if layout is None:
            return array
        array = transformed(array, layout)
        padded = np.pad(array, [(0, to - size) for to, size in zip(layout.pad_to, array.shape, strict=True)])
        return np.ascontiguousarray(padded.reshape(layout.reshape).transpose(layout.permutation))

    def call(self) -> None:
        self.share(0, 1)

    def share(self, part: int, parts: int) -> None:
        """What one of `parts` threads would run."""
        begin, end = (self.workgroups * i // parts for i in (part, part + 1))
        self.function(self.pointers, None, begin, end, self.scratch.ctypes.data)


@cache
def peak_gflops(isa: Machine) -> float:
    """Multiply-adds per second of one core, in GFLOP/s: independent chains, nothing from memory."""
    lanes = isa.lanes("f32")
    k = KernelBuilder("peak", isa)
    x = k.binding(0, "f32", 16 * lanes, writable=True)
    chains = [k.load(x, lanes * i, lanes) for i in range(12)]
    a, b = k.load(x, lanes * 12, lanes), k.load(x, lanes * 13, lanes)
    for i, total in enumerate(k.loop(k.begin, k.end, 1, lambda _, *c: [k.fma(a, b, v) for v in c], chains)):
        k.store(x, lanes * i, total)
    function, data = load(k.finish(), isa), aligned(np.zeros(16 * lanes, np.float32))
    pointers = (ctypes.c_void_p * 1)(data.ctypes.data)
    count = 500_000
    return 24 * lanes * count / best([lambda: function(pointers, None, 0, count, None)], 0.3)[0] / 1e9


def best(functions: Sequence[Callable[[], Any]], seconds: float) -> list[float]:
    """The least time of each function, taken in turns for `seconds` each; of this thread only, so that others on the
    machine count less."""
    times = [float("inf")] * len(functions)
    inner = [1] * len(functions)
    for i, function in enumerate(functions):
        function()
        start = time.thread_time()
        function()
        inner[i] = max(1, int(0.001 / max(time.thread_time() - start, 1e-7)))
    end = time.perf_counter() + seconds * len(functions)
    while time.perf_counter() < end:
        for i, function in enumerate(functions):
            start = time.thread_time()
            for _ in range(inner[i]):
                function()
            times[i] = min(times[i], (time.thread_time() - start) / inner[i])
    return times
