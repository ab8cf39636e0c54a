"""Columns that do not stay in cache are asked for before they are read: how, and that every line of the next panel
is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import dims_map
from fuseline.targets.cpu.combinators.prefetch import NONE, Prefetch
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.contraction.prefetch import choose_prefetch
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.target import Refusal
from tests.graphs.program import Program
from tests.kernel_ir import evaluate as interpreter
from tests.kernels import Runner, assert_close, kernel_of, plan_of, random

FAMILY = ContractionFamily()
AVX2 = machine("avx2")
LINE = 16


def view_of(rows: int, columns: int, steps: int | tuple[int, int], *, constant: bool = True) -> DispatchView:
    """A product; `steps` may be two axes of the reduction, with the rows of the left operand between them."""
    constants = [1] if constant else []
    if isinstance(steps, int):
        p = Program((rows, steps), (steps, columns), constants=constants)
        return p.dispatch(p.matmul(p.x[0], p.x[1]))
    p = Program((steps[0], rows, steps[1]), (*steps, columns), constants=constants)
    maps = [dims_map(4, [2, 0, 3]), dims_map(4, [2, 3, 1]), dims_map(4, [0, 1])]
    return p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(rows, columns), maps, "pprr"))


def plan_for(rows: int, columns: int, steps: int, isa: Machine = AVX2, *, constant: bool = True) -> ContractionPlan:
    """The plan of a product."""
    plan = plan_of(FAMILY, view_of(rows, columns, steps, constant=constant), isa)
    assert isinstance(plan, ContractionPlan)
    return plan


class SmallCache(ContractionFamily):
    """Plans as for a machine whose second-level cache is small, so that small constants do not stay in it."""

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        return super().accepts(view, replace(machine, l2_bytes=2048))


@pytest.mark.parametrize(
    ("rows", "columns", "steps", "way"),
    [
        (1, 4096, 256, "none"), (4, 4096, 256, "distance"), (12, 4096, 256, "period"), (64, 4096, 512, "period"),
        (512, 4096, 256, "period"),
        (64, 64, 64, "none"), (400, 512, 512, "none"),
    ],
)  # fmt: skip
def test_how_columns_are_asked_for(rows: int, columns: int, steps: int, way: str):
    """Just ahead where one tile uses them, a panel ahead where several do; not for one row, in cache, nor for blocks of
    two tiles."""
    plan = plan_for(rows, columns, steps)
    if rows == 400:
        plan = replace(plan, blocks=replace(plan.blocks, tiles=2, panels=32, columns_outer=False))
        plan = replace(plan, prefetch=choose_prefetch(plan.loops, plan.tile, plan.blocks, plan.rhs_mode, AVX2))
    found = plan.prefetch
    assert {
        "none": found == NONE,
        "distance": found.distance == 2048 // 4,
        "period": found.period > 0 == found.distance,
    }[way]
    assert ("llvm.prefetch" in print_llvm([kernel_of(FAMILY, plan, AVX2)], AVX2)) == (way != "none")


def test_a_known_shape_is_asked_for_once():
    """22 tiles of 384 steps ask for 24 lines each, one every 16 steps: 528 for a panel of 384, no step's worth more
    than twice."""
    assert plan_for(128, 1536, 384).prefetch == Prefetch(period=16, lines=1, requests=24, tiles=22, share=24 * LINE)


def test_runtime_columns_are_not_asked_for():
    assert plan_for(64, 4096, 512, constant=False).prefetch == NONE


@pytest.mark.parametrize("steps", [7, 20, 33, (3, 8), (5, 11)])
@pytest.mark.parametrize(("rows", "columns"), [(12, 64), (31, 100)])
def test_every_line_of_the_next_panel_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, rows: int, columns: int, steps: int | tuple[int, int]
):
    run = Runner(SmallCache(), view_of(rows, columns, steps), AVX2)
    plan = run.plan
    assert isinstance(plan, ContractionPlan) and plan.prefetch.period and plan.packed is not None
    asked: set[int] = set()
    operations: dict[str, Any] = vars(interpreter)["_OPS"]
    monkeypatch.setitem(operations, "prefetch", lambda r, v: asked.add(r.place(v.args[0])[1] // LINE))
    shapes = (
        [(rows, steps), (steps, columns)] if isinstance(steps, int) else [(steps[0], rows, steps[1]), (*steps, columns)]
    )
    a, b = random(shapes[0], 1), random(shapes[1], 2)
    found = run.evaluated(a, b)[0]
    assert_close(found, np.einsum("mk,kn->mn" if isinstance(steps, int) else "amb,abn->mn", a, b, dtype=np.float64))
    assert set(range(plan.packed.panel_stride // LINE, plan.packed.elements // LINE)) <= asked


@pytest.mark.parametrize("shape", [(50, 400, 777), (27, 700, 400), (25, 333, 640)])
def test_products_with_requests(shape: tuple[int, int, int]):
    m, n, k = shape
    p = Program((m, k), (k, n), constants=[1])
    run = Runner(SmallCache(), p.dispatch(p.matmul(p.x[0], p.x[1])))
    assert isinstance(run.plan, ContractionPlan) and run.plan.prefetch.period
    a, b = random((m, k), 1), random((k, n), 2)
    assert_close(run(a, b)[0], a.astype(np.float64) @ b)


@pytest.mark.parametrize("isa", ["avx512", "neon", "baseline"])
def test_wide_panels_are_asked_for_in_time(isa: str):
    """All lines of a panel, whatever the vectors are."""
    plan = plan_for(24, 2048, 300, machine(isa))
    assert plan.packed is not None
    found = plan.prefetch
    assert found.period and found.tiles * found.share >= plan.packed.panel_stride
