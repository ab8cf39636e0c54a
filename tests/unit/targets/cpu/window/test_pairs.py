"""Poolings of floats that combine columns first are tiles of two vectors; others keep theirs."""

from __future__ import annotations

import pytest

from fuseline.targets.cpu.families.window.family import WindowFamily
from fuseline.targets.cpu.families.window.pairs import in_pairs
from fuseline.targets.cpu.families.window.plan import WindowPlan
from fuseline.targets.cpu.isa import machine
from tests.kernels import plan_of
from tests.unit.targets.cpu.contraction_families.test_window import Case


@pytest.mark.parametrize(("isa", "tile"), [("avx512", (5, 2)), ("avx2", (2, 2))])
def test_a_maximum_of_overlapping_windows_is_two_vectors_wide(isa: str, tile: tuple[int, int]):
    plan = plan_of(WindowFamily(), Case((31, 31), (3, 3), 80, stride=2).pooling("max", 0.0), machine(isa))
    assert isinstance(plan, WindowPlan) and plan.columns_first
    assert (plan.pixels, plan.vectors) == tile
    assert in_pairs(plan.loops, machine(isa)) == tile


@pytest.mark.parametrize(
    ("case", "what"),
    [
        (Case((31, 31), (3, 3), 24, stride=2), "max"),  # one vector and a half
        (Case((31, 31), (2, 2), 80, stride=2), "max"),  # pixels share no columns
    ],
)
def test_others_keep_their_tiles(case: Case, what: str):
    plan = plan_of(WindowFamily(), case.pooling(what, 0.0), machine("avx512"))
    assert isinstance(plan, WindowPlan) and in_pairs(plan.loops, machine("avx512")) is None


def test_a_depthwise_convolution_keeps_its_tile():
    plan = plan_of(WindowFamily(), Case((31, 31), (3, 3), 80).depthwise(), machine("avx512"))
    assert isinstance(plan, WindowPlan) and plan.vectors == 1
