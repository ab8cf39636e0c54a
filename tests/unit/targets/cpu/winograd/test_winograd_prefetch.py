"""Panels of a transformed filter that does not stay in cache are asked for while the one before is in use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.combinators.prefetch import NONE
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan
from fuseline.targets.cpu.isa import Machine, machine
from fuseline.targets.target import Refusal
from tests.kernel_ir import evaluate as interpreter
from tests.kernels import Runner, assert_close, plan_of

from .convolutions import Case, Forced

AVX2, LINE = machine("avx2"), 16


class SmallCache(Forced):
    """As for a machine whose second-level cache is small."""

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        return super().accepts(view, replace(machine, l2_bytes=2048))


@pytest.mark.parametrize("tiles", [5, 14])
def test_every_line_of_the_next_panel_is_asked_for(monkeypatch: pytest.MonkeyPatch, tiles: int):
    case = Case((9, 11), (13, 40))
    run = Runner(SmallCache(2, tiles, 32), case.view, AVX2)
    plan = run.plan
    assert isinstance(plan, WinogradPlan) and plan.prefetch.tiles == plan.rows.count
    asked: set[int] = set()
    operations: dict[str, Any] = vars(interpreter)["_OPS"]
    monkeypatch.setitem(operations, "prefetch", lambda r, v: asked.add(r.place(v.args[0])[1] // LINE))
    arrays = case.arrays()
    assert_close(run.evaluated(*arrays)[0], case.expected(*arrays), bits=16)
    panel = plan.loops.channels * plan.width
    assert set(range(panel // LINE, plan.filter_elements // LINE)) <= asked


def test_a_filter_that_stays_in_cache_is_not_asked_for():
    plan = plan_of(Forced(2, 5, 32), Case((9, 11), (13, 40)).view, AVX2)
    assert isinstance(plan, WinogradPlan) and plan.prefetch == NONE
