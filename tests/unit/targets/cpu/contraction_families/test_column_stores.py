"""Products whose results have rows a few elements apart: phases of an upsampling, channels outermost."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.build import dims_map
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.root.column_stores import lies_across
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from tests.graphs.program import Program
from tests.kernels import Array, Runner, assert_close, kernel_of, plan_of, random

FAMILY = ContractionFamily()


def _upsampled(m: int | str, n: int, phases: int, k: int, *, relu: bool) -> DispatchView:
    """`y[n, 3, 2, m, phases]` of an image `a[k, 3, m]` and `w[k, 2, phases, n]`, a constant."""
    p = Program((k, 3, m), (k, 2, phases, n), constants=[1])
    maps = [dims_map(6, [5, 0, 1]), dims_map(6, [5, 2, 3, 4]), dims_map(6, [0, 1, 2, 3, 4])]
    y = p.multiply_add(p.x[0], p.x[1], p.zeros(3, m, 2, phases, n), maps, "pppppr")
    turned = [dims_map(5, [0, 1, 2, 3, 4]), dims_map(5, [4, 0, 2, 1, 3])]
    made = p.relu(y) if relu else y
    return p.dispatch(p.elementwise([made], p.empty(n, 3, 2, m, phases), lambda b: b.args[0], turned))


def _expected(a: Array, w: Array, *, relu: bool) -> Array:
    y = np.einsum("khm,krpn->nhrmp", a.astype(np.float64), w)
    return np.maximum(y, 0) if relu else y


CASES = {
    "pairs": (29, 48, 2, 9, True),
    "whole tiles": (64, 32, 2, 16, False),
    "thirds": (17, 21, 3, 5, True),
    "a row": (1, 33, 2, 8, False),
    "few columns": (30, 3, 4, 12, True),
    "further apart than a line": (20, 16, 40, 4, False),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_a_few_elements_apart(name: str):
    m, n, phases, k, relu = CASES[name]
    a, w = random((k, 3, m), 1), random((k, 2, phases, n), 2)
    for at_end in (True, False):
        (found,) = Runner(FAMILY, _upsampled(m, n, phases, k, relu=relu))(a, w, at_end=at_end)
        assert_close(found, _expected(a, w, relu=relu), least=1.0)


@pytest.mark.parametrize("m", [1, 7, 31])
def test_as_many_rows_as_the_run_has(m: int):
    view = _upsampled("m", 24, 2, 6, relu=True)
    a, w = random((6, 3, m), 1), random((6, 2, 2, 24), 2)
    (found,) = Runner(FAMILY, view)(a, w, sizes={"m": m})
    assert_close(found, _expected(a, w, relu=True), least=1.0)


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("name", CASES)
def test_no_access_leaves_its_buffer(name: str, isa: str):
    m, n, phases, k, relu = CASES[name]
    plan = plan_of(FAMILY, _upsampled(m, n, phases, k, relu=relu), machine(isa))
    assert check_bounds(kernel_of(FAMILY, plan, machine(isa)), [], d.evaluate(plan.workgroups, {})) == []


@pytest.mark.parametrize(("phases", "across"), [(2, True), (3, True), (1, False), (16, False)])
def test_what_lies_across(phases: int, across: bool):
    plan = plan_of(FAMILY, _upsampled(29, 40, phases, 9, relu=False), machine("avx2"))
    assert isinstance(plan, ContractionPlan)
    rows, lane = plan.tiled.loops if plan.tiled is not None else (), plan.loops.column.loops[-1]
    assert lies_across(plan.paths[0], rows, lane) == across
    assert not lies_across(plan.paths[0], rows, None)
