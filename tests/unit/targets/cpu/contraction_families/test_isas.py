"""Every ISA's kernels become objects; those this machine can run are run."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import dims_map
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.family import Family
from fuseline.targets.cpu.families.window.family import WindowFamily
from fuseline.targets.cpu.isa import ISA_NAMES, cpu_flags, machine
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.link.compile import emit_object
from tests.graphs.program import Program
from tests.kernels import Runner, assert_close, kernel_of, plan_of, random

from . import test_convolution, test_grouped, test_prologues, test_window
from .narrow import narrow


def product(m: int = 50, n: int = 70, k: int = 30) -> DispatchView:
    p = Program((m, k), (k, n), (n,), constants=[1, 2])
    return p.dispatch(p.relu(p.bias(p.matmul(p.x[0], p.x[1]), p.x[2], 1)))


def padded_concat_with_an_upsampled_part() -> DispatchView:
    p = Program((1, 10, 12, 48), (1, 5, 6, 9), (3, 3, 57, 40), constants=[2])
    x = p.pad(p.concat(p.x[0], p.repeated(p.x[1], (1, 2, 2, 1)), axis=3), [0, 1, 1, 0], [0, 1, 1, 0])
    maps = test_convolution.maps_of(2, (1, 1), (1, 1))
    return p.dispatch(p.multiply_add(x, p.x[2], p.zeros(1, 10, 12, 40), maps, "pppprrr"))


def computed_image() -> DispatchView:
    p = Program((1, 30, 33, 3), (7, 7, 3, 40), constants=[1])
    x = p.pad(p.unary(p.x[0]), [0, 3, 3, 0], [0, 3, 3, 0])
    maps = test_convolution.maps_of(2, (2, 2), (1, 1))
    return p.dispatch(p.multiply_add(x, p.x[1], p.zeros(1, 15, 17, 40), maps, "pppprrr"))


def rotated_scores() -> DispatchView:
    p = Program((2, 48, 32), (2, 48, 32), (48, 32), (48, 32))
    q, k = (test_prologues.rotated(p, x, (p.x[2], p.x[3]), 2, 48, 32) for x in p.x[:2])
    return p.dispatch(test_prologues.scores(p, q, k, 2, 48, 48))


def narrow_constant() -> DispatchView:
    p = narrow((20, 31), (31, 40), bits=(16, 8), constants=[1])
    return p.dispatch(p.matmul(p.x[0], p.x[1]))


def narrow_packed() -> DispatchView:
    """Both operands known at run time, the right one along the reduction."""
    p = narrow((40, 31), (24, 31), bits=(8, 8))
    maps = [dims_map(3, [0, 2]), dims_map(3, [1, 2]), dims_map(3, [0, 1])]
    return p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(40, 24), maps, "ppr"))


CASES: dict[str, tuple[Family, DispatchView]] = {
    "product": (ContractionFamily(), product()),
    "convolution": (ConvolutionFamily(), test_convolution.CASES["3x3"].view),
    "segments": (ConvolutionFamily(), padded_concat_with_an_upsampled_part()),
    "boxed": (ConvolutionFamily(), computed_image()),
    "narrow": (ContractionFamily(), narrow_constant()),
    "narrow, packed": (ContractionFamily(), narrow_packed()),
    "packed": (ContractionFamily(), rotated_scores()),
    "depthwise": (WindowFamily(), test_window.CASES["3x3"].depthwise()),
    "grouped": (WindowFamily(), test_grouped.CASES["four per group"].view()),
}


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("name", CASES)
def test_kernels_become_objects(name: str, isa: str):
    family, view = CASES[name]
    target = machine(isa)
    text = print_llvm([kernel_of(family, plan_of(family, view, target), target)], target)
    assert len(text) < 120_000
    assert emit_object(text, target)[:4] == b"\x7fELF"


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_products_on_every_isa_this_machine_runs(isa: str):
    target = machine(isa)
    if not cpu_flags().issuperset(target.needs):
        pytest.skip(f"this machine has no {isa}")
    a, b, bias = random((50, 30), 1), random((30, 70), 2), random((70,), 3)
    found = Runner(ContractionFamily(), product(), target)(a, b, bias)[0]
    assert_close(found, np.maximum(a.astype(np.float64) @ b + bias, 0))
