"""Kernels of dispatches, run on the kernel IR's evaluator, which checks every access, or natively between pages that
may not be touched."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.build import element_of
from fuseline.ir.element_types import numpy_dtype
from fuseline.targets.cpu.families.family import Family, Plan, Refusal
from fuseline.targets.cpu.isa import Machine, machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.check_bounds import Problem, check_bounds
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.kernel_ir.types import Kernel
from fuseline.targets.cpu.link.compile import emit_object
from fuseline.weight_layouts import PackedLayout, transformed
from tests.kernel_ir.evaluate import evaluate

Array = NDArray[Any]
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
        self.array: Array = view[offset : offset + size].view(dtype).reshape(shape)

    @classmethod
    def copy(cls, array: Array, *, at_end: bool) -> Guarded:
        """What `array` holds, guarded."""
        guard = cls(array.shape, array.dtype, at_end=at_end)
        guard.array[...] = array
        return guard


@cache
def _loader(isa: Machine) -> Callable[[], Any]:
    target = llvm.Target.from_triple(isa.triple)
    return lambda: target.create_target_machine(cpu=isa.cpu, features=",".join(isa.features), opt=2)


def native(kernel: Kernel, isa: Machine) -> Callable[..., None]:
    """The kernel as a function of bindings, sizes, begin, end, scratch."""
    code = emit_object(print_llvm([kernel], isa), isa)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _loader(isa)())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _ENGINES.append(engine)
    return _SIGNATURE(engine.get_function_address(kernel.symbol))


def call(
    kernel: Kernel, isa: Machine, arrays: Sequence[Array], sizes: Sequence[int] = (), begin: int = 0, end: int = 1
) -> None:
    """Run `kernel` natively on `arrays` in place."""
    _call(native(kernel, isa), kernel, arrays, sizes, begin, end)


def _call(
    function: Callable[..., None], kernel: Kernel, arrays: Sequence[Array], sizes: Sequence[int], begin: int, end: int
) -> None:
    """One range of workgroups, scratch full of NaN."""
    pointers = (ctypes.c_void_p * max(1, len(arrays)))(*(a.ctypes.data for a in arrays))
    numbers = (ctypes.c_int64 * max(1, len(sizes)))(*sizes)
    scratch = Guarded([-(-kernel.scratch_bytes // 64) * 64], np.uint8, at_end=True)
    scratch.array[...] = 0xFF
    function(pointers, numbers, begin, end, scratch.array.ctypes.data)


def plan_of(family: Family, view: DispatchView, isa: Machine) -> Plan:
    """The family's plan; fails on a refusal."""
    plan = family.accepts(view, isa)
    assert not isinstance(plan, Refusal), plan
    return plan


def kernel_of(family: Family, plan: Plan, isa: Machine, symbol: str = "kernel") -> Kernel:
    """The kernel of a plan."""
    builder = KernelBuilder(symbol, isa)
    family.emit(plan, builder)
    return builder.finish()


def packed(array: Array, layout: PackedLayout) -> Array:
    """`array` laid out as a kernel wants a constant."""
    array = array.reshape(layout.shape or array.shape)
    plain = transformed(array, layout)
    padded = np.pad(plain, [(0, to - size) for to, size in zip(layout.pad_to, plain.shape, strict=True)])
    found = np.ascontiguousarray(padded.reshape(layout.reshape).transpose(layout.permutation))
    return found if layout.then is None else np.concatenate([found.ravel(), packed(array, layout.then).ravel()])


class Runner:
    """A dispatch as the first of `families` that accepts it lowers it for this machine (or a given ISA), to be called
    with arrays."""

    def __init__(self, families: Family | Sequence[Family], view: DispatchView, isa: Machine | None = None) -> None:
        self.view, self.isa = view, isa or machine()
        self.family, self.plan = _first(families if isinstance(families, Sequence) else [families], view, self.isa)
        self.kernel = kernel_of(self.family, self.plan, self.isa)

    def __call__(
        self, *arrays: Array, sizes: Mapping[str, int] | None = None, parts: int = 3, at_end: bool = True
    ) -> list[Array]:
        """The results natively, every buffer beside a page that may not be touched; the grid is run in `parts` ranges,
        results and scratch full of rubbish before."""
        numbers = self._numbers(sizes)
        guards = [Guarded.copy(a, at_end=at_end) for a in (*self._operands(arrays), *self._rubbish(sizes))]
        for begin, end in self._ranges(sizes, parts):
            _call(self._function, self.kernel, [g.array for g in guards], numbers, begin, end)
        return [np.array(guard.array) for guard in guards[len(arrays) :]]

    def in_place(
        self, *arrays: Array, operand: int, order: Sequence[int], sizes: Mapping[str, int] | None = None
    ) -> Array:
        """The only result, written where `operand` lies; workgroups run one by one in this order."""
        guards = [Guarded.copy(a, at_end=True) for a in self._operands(arrays)]
        bound = [*guards, guards[operand]]
        for workgroup in order:
            _call(
                self._function,
                self.kernel,
                [g.array for g in bound],
                self._numbers(sizes),
                workgroup,
                workgroup + 1,
            )
        return np.array(guards[operand].array)

    def evaluated(self, *arrays: Array, sizes: Mapping[str, int] | None = None, parts: int = 1) -> list[Array]:
        """The results by the kernel IR's evaluator, which checks every access against its buffer."""
        results = self._rubbish(sizes)
        operands = [a.copy() for a in self._operands(arrays)]
        for begin, end in self._ranges(sizes, parts):
            evaluate(self.kernel, [*operands, *results], self._numbers(sizes), begin, end)
        return results

    def unproved(self, sizes: Mapping[str, int] | None = None) -> list[Problem]:
        """Accesses that the bounds checker cannot prove."""
        return check_bounds(self.kernel, self._numbers(sizes), d.evaluate(self.plan.workgroups, dict(sizes or {})))

    @cached_property
    def _function(self) -> Callable[..., None]:
        return native(self.kernel, self.isa)

    def _numbers(self, sizes: Mapping[str, int] | None) -> list[int]:
        return [(sizes or {})[name] for name in self.view.size_names]

    def _ranges(self, sizes: Mapping[str, int] | None, parts: int) -> Iterator[tuple[int, int]]:
        total = d.evaluate(self.plan.workgroups, dict(sizes or {}))
        return pairwise([total * i // parts for i in range(parts + 1)])

    def _operands(self, arrays: Sequence[Array]) -> list[Array]:
        layouts = self.plan.constant_layouts
        return [packed(a, layouts[i]) if i in layouts else a for i, a in enumerate(arrays)]

    def _rubbish(self, sizes: Mapping[str, int] | None) -> list[Array]:
        results = [np.empty(shape_at(self.view, r, sizes or {}), numpy_dtype(element_of(r))) for r in self.view.results]
        for result in results:
            result.reshape(-1).view(np.uint8)[...] = 0xFF if result.dtype != bool else 1
        return results


def _first(families: Sequence[Family], view: DispatchView, isa: Machine) -> tuple[Family, Plan]:
    for family in families[:-1]:
        plan = family.accepts(view, isa)
        if not isinstance(plan, Refusal):
            return family, plan
    return families[-1], plan_of(families[-1], view, isa)


def shape_at(view: DispatchView, value: SSAValue, sizes: Mapping[str, int]) -> list[int]:
    """The shape of a value for given sizes."""
    return [d.evaluate(size, sizes) for size in view.shapes.dims(value)]


def random(shape: Sequence[int], seed: int, dtype: Any = np.float32) -> Array:
    """Standard normal numbers, the same for a seed."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def arrays_for(view: DispatchView, sizes: Mapping[str, int] | None = None) -> list[Array]:
    """A random array for every argument of a dispatch over f32."""
    return [random(shape_at(view, x, sizes or {}), seed) for seed, x in enumerate(view.tensors)]


def assert_close(found: Array, expected: Array, *, bits: int = 18, least: float = 1e-30) -> None:
    """Equal up to `2**-bits` of the largest finite magnitude, or of `least` (what cancels may be small); infinite only
    where that is expected."""
    assert found.shape == expected.shape
    finite = np.isfinite(expected)
    scale = np.abs(expected[finite]).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2.0**-bits * max(float(scale), least))
