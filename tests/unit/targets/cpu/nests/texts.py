"""Dispatches as MLIR text, run natively between guard pages and compared with the NumPy oracle."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from fuseline.analysis.evaluation.program import evaluate_function
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.build import element_of, numpy_dtype
from fuseline.ir.context import new_context
from fuseline.targets.cpu.families.family import Family, Plan, Refusal
from fuseline.targets.cpu.families.nests.elementwise import Elementwise
from fuseline.targets.cpu.families.nests.loop_nest import LoopNest
from fuseline.targets.cpu.families.nests.rows import Rows
from fuseline.targets.cpu.families.sequential.rank import RankFamily
from fuseline.targets.cpu.families.sequential.scan import ScanFamily
from fuseline.targets.cpu.families.sequential.scatter import ScatterFamily
from fuseline.targets.cpu.families.sequential.selection import SelectionFamily
from fuseline.targets.cpu.isa import Machine, machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.check_bounds import Problem, check_bounds
from fuseline.targets.cpu.kernel_ir.evaluate import evaluate
from fuseline.targets.cpu.kernel_ir.types import Kernel
from tests.kernels import Guarded, native

Array = NDArray[Any]


def parse(text: str) -> DispatchView:
    """The first function in `text`, verified."""
    module = Parser(new_context(), text).parse_module()
    module.verify()
    return DispatchView(next(op for op in module.ops if isinstance(op, FuncOp)))


def first_family(view: DispatchView, isa: Machine) -> tuple[Family, Plan]:
    """The first of scan, scatter, rank, selection, rows, elementwise and loop nest that accepts."""
    for family in (ScanFamily(), ScatterFamily(), RankFamily(), SelectionFamily(), Rows(), Elementwise(), LoopNest()):
        plan = family.accepts(view, isa)
        if not isinstance(plan, Refusal):
            return family, plan
    raise AssertionError("the loop nest accepts everything")


def build(view: DispatchView, isa: Machine) -> tuple[Family, Plan, Kernel]:
    """The kernel of a dispatch."""
    family, plan = first_family(view, isa)
    builder = KernelBuilder("kernel", isa)
    family.emit(plan, builder)
    return family, plan, builder.finish()


def inputs(view: DispatchView, sizes: Mapping[str, int], seed: int) -> list[Array]:
    """Random arguments: normal floats, small integers, fair coins."""
    rng = np.random.default_rng(seed)
    return [_random(rng, shape_at(view, value, sizes), numpy_dtype(element_of(value))) for value in view.tensors]


def _random(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind == "i":
        return rng.integers(-9, 10, shape).astype(dtype)
    return (2 * rng.standard_normal(shape)).astype(dtype)


def shape_at(view: DispatchView, value: Any, sizes: Mapping[str, int]) -> list[int]:
    """The shape of a value for given sizes."""
    return [d.evaluate(size, sizes) for size in view.shapes.dims(value)]


def run(
    view: DispatchView, arrays: Sequence[Array], sizes: Mapping[str, int], isa: Machine, *, parts: int, at_end: bool
) -> list[Array]:
    """The results, the grid cut into `parts` ranges, all buffers beside unreadable pages, scratch and results full of
    rubbish."""
    _, plan, kernel = build(view, isa)
    function = native(kernel, isa)
    guards = [Guarded(a.shape, a.dtype, at_end=at_end) for a in arrays]
    for guard, array in zip(guards, arrays, strict=True):
        guard.array[...] = array
    results = [Guarded(shape_at(view, r, sizes), numpy_dtype(element_of(r)), at_end=at_end) for r in view.results]
    for result in results:
        result.array.reshape(-1).view(np.uint8)[...] = 0xCD if result.array.dtype != bool else 1
    pointers = (ctypes.c_void_p * (len(guards) + len(results)))(*(g.array.ctypes.data for g in (*guards, *results)))
    numbers = (ctypes.c_int64 * max(1, len(view.size_names)))(*(sizes[name] for name in view.size_names))
    total = d.evaluate(plan.workgroups, sizes)
    for begin, end in pairwise([total * i // parts for i in range(parts + 1)]):
        scratch = Guarded([-(-kernel.scratch_bytes // 64) * 64], np.uint8, at_end=True)
        scratch.array[...] = 0xFF
        function(pointers, numbers, begin, end, scratch.array.ctypes.data)
    return [np.array(result.array) for result in results]


def evaluated(view: DispatchView, arrays: Sequence[Array], sizes: Mapping[str, int], isa: Machine) -> list[Array]:
    """The results of the kernel on the NumPy evaluator, which checks every access."""
    _, plan, kernel = build(view, isa)
    results = [np.zeros(shape_at(view, r, sizes), numpy_dtype(element_of(r))) for r in view.results]
    evaluate(
        kernel, [*arrays, *results], [sizes[name] for name in view.size_names], 0, d.evaluate(plan.workgroups, sizes)
    )
    return results


def unproved(view: DispatchView, sizes: Mapping[str, int], isa: Machine) -> list[Problem]:
    """Accesses that the bounds checker cannot prove."""
    _, plan, kernel = build(view, isa)
    return check_bounds(kernel, [sizes[name] for name in view.size_names], d.evaluate(plan.workgroups, sizes))


def check(
    text: str,
    *,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    isa: Machine | None = None,
    family: str = "",
    bits: int = 17,
) -> None:
    """Compile and run `text`'s function, at both ends of a page, and compare with the oracle."""
    view, sizes, isa = parse(text), dict(sizes or {}), isa or machine()
    if family:
        assert first_family(view, isa)[0].name == family
    arrays = inputs(view, sizes, seed)
    want = evaluate_function(view.entry, [*arrays, *(np.asarray(sizes[name], np.int64) for name in view.size_names)])
    assert unproved(view, sizes, isa) == []
    for one, expected in zip(evaluated(view, arrays, sizes, isa), want, strict=True):
        compare(one, expected, bits)
    for at_end, parts in ((True, 1), (False, 3)):
        found = run(view, arrays, sizes, isa, parts=parts, at_end=at_end)
        for one, expected in zip(found, want, strict=True):
            compare(one, expected, bits)


def compare(found: Array, expected: Array, bits: int) -> None:
    """Integers equal; floats equal up to `2**-bits` of the largest magnitude, NaN and infinities where they should
    be."""
    assert found.shape == expected.shape
    if found.dtype.kind not in "fV":
        np.testing.assert_array_equal(found, expected)
        return
    wide, goal = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(goal)
    scale = float(np.abs(goal[finite]).max(initial=0.0))
    bits = {2: 7, 4: bits, 8: bits}[found.dtype.itemsize]
    np.testing.assert_allclose(wide, goal, rtol=2.0**-bits, atol=2.0**-bits * max(scale, 1e-30))
