"""Plans with a tile that is given, as the sweep of tiles makes them: every tile computes the same."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.loops import contraction_loops
from fuseline.targets.cpu.families.contraction.plan import plan_contraction
from fuseline.targets.cpu.families.family import Plan, Policy
from fuseline.targets.cpu.families.window.family import WindowFamily
from fuseline.targets.cpu.families.window.loops import window_loops
from fuseline.targets.cpu.families.window.plan import plan_window
from fuseline.targets.cpu.isa import Machine, machine
from fuseline.targets.cpu.tiles import Tile
from fuseline.targets.target import Refusal
from tests.graphs.program import Program
from tests.kernels import Runner, assert_close, random

from .test_window import Case


class Given(ContractionFamily):
    """Contractions in tiles of one size."""

    def __init__(self, tile: Tile) -> None:
        super().__init__(Policy())
        self.tile = tile

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        loops = contraction_loops(view)
        return loops if isinstance(loops, Refusal) else plan_contraction(loops, machine, self.tile)


class GivenWindow(WindowFamily):
    """Windows in tiles of one size."""

    def __init__(self, pixels: int, vectors: int) -> None:
        super().__init__(Policy())
        self.tile = (pixels, vectors)

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        loops = window_loops(view)
        return loops if isinstance(loops, Refusal) else plan_window(loops, machine, self.tile)


@pytest.mark.parametrize("tile", [Tile(1, 1), Tile(2, 5), Tile(14, 1), Tile(3, 3)])
def test_contractions(tile: Tile):
    p = Program((23, 19), (19, 50), constants=[1])
    view = p.dispatch(p.matmul(p.x[0], p.x[1]))
    family = Given(tile)
    plan = family.accepts(view, machine())
    assert not isinstance(plan, Refusal)
    assert str(plan.notes["tile"]).startswith(f"{tile.rows}x")
    a, b = random((23, 19), 1), random((19, 50), 2)
    assert_close(Runner(family, view)(a, b)[0], a.astype(np.float64) @ b)


@pytest.mark.parametrize(("pixels", "vectors"), [(1, 1), (3, 3), (12, 1), (7, 2)])
def test_windows(pixels: int, vectors: int):
    Case((13, 15), (5, 5), 27, pad=(2, 2)).check_depthwise(family=GivenWindow(pixels, vectors))
