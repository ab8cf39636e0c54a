"""Tiny kernels on the kernel IR's NumPy evaluator, where every access is checked, against the native code; emitted for
every ISA."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.family import Family
from fuseline.targets.cpu.families.window.family import WindowFamily
from fuseline.targets.cpu.isa import ISA_NAMES, cpu_flags, machine
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from tests.graphs.program import Program
from tests.kernels import Runner, assert_close, kernel_of, plan_of, random

from .test_convolution import Case as Convolution
from .test_grouped import Case as Grouped
from .test_window import Case as Window


def product(m: int | str, n: int | str, k: int | str, *, constant: bool) -> DispatchView:
    p = Program((m, k), (k, n), constants=[1] if constant else [])
    return p.dispatch(p.relu(p.matmul(p.x[0], p.x[1])))


def turned(m: int, n: int, k: int) -> DispatchView:
    from fuseline.ir.build import dims_map

    p = Program((m, k), (n, k))
    maps = [dims_map(3, [0, 2]), dims_map(3, [1, 2]), dims_map(3, [0, 1])]
    return p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(m, n), maps, "ppr"))


CASES: dict[str, tuple[Family, DispatchView, dict[str, int]]] = {
    "product": (ContractionFamily(), product(7, 11, 5, constant=True), {}),
    "product at run time": (ContractionFamily(), product("m", "n", "k", constant=False), {"m": 7, "n": 11, "k": 3}),
    "rows at run time": (ContractionFamily(), product("m", 11, 5, constant=True), {"m": 7}),
    "turned product": (ContractionFamily(), turned(9, 10, 5), {}),
    "convolution": (ConvolutionFamily(), Convolution((5, 6), (3, 3), (3, 9), pad=(1, 1)).view, {}),
    "strided convolution": (
        ConvolutionFamily(),
        Convolution((7, 7), (3, 3), (2, 5), pad=(1, 1), stride=2, value=1.5).view,
        {},
    ),
    "depthwise": (WindowFamily(), Window((5, 6), (3, 3), 9, pad=(1, 1)).depthwise(), {}),
    "grouped": (WindowFamily(), Grouped((5, 6), (3, 3), (5, 4, 4), pad=(1, 1)).view(), {}),
    "strided groups": (WindowFamily(), Grouped((5, 7), (3, 3), (3, 2, 4), pad=(1, 1), stride=2).view(), {}),
    "pooling": (WindowFamily(), Window((5, 6), (3, 3), 9, pad=(1, 1), stride=2).pooling("max", 0.0), {}),
}


def arrays_of(view: DispatchView, sizes: dict[str, int]) -> Sequence[tuple[int, ...]]:
    return [tuple(d.evaluate(n, sizes) for n in view.shapes.dims(x)) for x in view.tensors]


@pytest.mark.parametrize("name", CASES)
def test_evaluator_and_machine_agree(name: str):
    family, view, sizes = CASES[name]
    run = Runner(family, view)
    arrays = [random(shape, i) for i, shape in enumerate(arrays_of(view, sizes))]
    assert_close(run.evaluated(*arrays, sizes=sizes)[0], run(*arrays, sizes=sizes)[0])


@pytest.mark.parametrize(
    "isa", [name for name in ("avx512", "baseline", "neon") if not cpu_flags().issuperset(machine(name).needs)]
)
@pytest.mark.parametrize("name", CASES)
def test_kernels_of_machines_that_are_not_here(name: str, isa: str):
    family, view, sizes = CASES[name]
    arrays = [random(shape, i) for i, shape in enumerate(arrays_of(view, sizes))]
    expected = Runner(family, view)(*arrays, sizes=sizes)[0]
    assert_close(Runner(family, view, machine(isa)).evaluated(*arrays, sizes=sizes)[0], expected)


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize(
    "name", [name for name in CASES if name != "product at run time"]
)  # a vector with no live lane is no access: not seen
def test_no_access_can_leave_its_buffer(name: str, isa: str):
    family, view, sizes = CASES[name]
    target = machine(isa)
    plan = plan_of(family, view, target)
    kernel = kernel_of(family, plan, target)
    numbers = [sizes[name] for name in view.size_names]
    assert check_bounds(kernel, numbers, d.evaluate(plan.workgroups, sizes)) == []
