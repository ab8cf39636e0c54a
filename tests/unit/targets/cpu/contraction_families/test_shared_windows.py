"""One form for windows that are equal up to extents: which have one, and where their tiles begin."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fuseline.dispatch.view import DispatchView
from fuseline.ir.costs import MachineCosts
from fuseline.targets.cpu.combinators.split import split_tiles
from fuseline.targets.cpu.families.family import Plan, Refusal, Shared
from fuseline.targets.cpu.families.window.family import WindowFamily
from fuseline.targets.cpu.families.window.plan import WindowPlan
from fuseline.targets.cpu.families.window.shared_form import SharedForm
from fuseline.targets.cpu.families.window.shared_plan import shared_plans
from fuseline.targets.cpu.isa import Machine, machine
from fuseline.targets.cpu.tiles import split_in_tiles
from tests.draws import RNG
from tests.graphs.program import Program
from tests.kernels import Runner

ISA = replace(machine(), costs=MachineCosts(sharing_loss=1.0))
LANES = ISA.lanes("f32")


class Planned(WindowFamily):
    """Windows with one plan."""

    def __init__(self, plan: WindowPlan) -> None:
        super().__init__()
        self.plan = plan

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        assert view is self.plan.view
        return self.plan


def depthwise(pixels: int, vectors: int) -> WindowPlan:
    """A padded window of 3 over a line of pixels, channel by channel."""
    channels = vectors * LANES
    p = Program((pixels, channels), (3, channels), constants=[1])
    view = p.dispatch(p.depthwise(p.pad(p.x[0], [1, 0], [1, 0]), p.x[1]))
    plan = WindowFamily().accepts(view, ISA)
    assert isinstance(plan, WindowPlan)
    return plan


def shared(*plans: WindowPlan) -> list[Shared]:
    return shared_plans(plans, ISA)


def formed(found: Shared) -> list[WindowPlan]:
    return [plan for plan in found.plans if isinstance(plan, WindowPlan)]


def test_lines_of_many_lengths_have_one_form():
    (found,) = shared(*(depthwise(*one) for one in ((14, 6), (28, 3), (56, 1))))
    assert found.members == (0, 1, 2) and len({plan.form for plan in formed(found)}) == 1
    assert len({plan.pixels for plan in formed(found)}) == 1


def test_a_price_beyond_the_limit_is_none():
    plans = [depthwise(pixels, 2) for pixels in (10, 11 * 12)]
    strict = replace(ISA, costs=MachineCosts(sharing_loss=0.001))
    assert all(max(found.lost) <= 0.001 for found in shared_plans(plans, strict))


@pytest.mark.parametrize(("pixels", "height"), [(12, 12), (12, 7), (23, 12), (11, 12), (25, 9)])
def test_tiles_meet_padding_wherever_any_of_the_form_does(pixels: int, height: int):
    split = split_in_tiles(pixels, height)
    everywhere = SharedForm(height, short=True, tall_ends=True, short_begins=True)
    for tiles in split_tiles(split, both=True):
        first, last = everywhere.starts(tiles, pixels)
        assert first == 0 and last == pixels - tiles.height
    nowhere = SharedForm(height, short=True, tall_ends=False, short_begins=False)
    for tiles in split_tiles(split, both=True):
        assert nowhere.starts(tiles, pixels)[1] == tiles.start_range[1]


def test_each_computes_what_it_does_alone():
    plans = [depthwise(int(RNG.integers(5, 60)), int(RNG.integers(1, 6))) for _ in range(3)]
    for found in shared(*plans):
        for number, plan in zip(found.members, formed(found), strict=True):
            own = plans[number]
            shapes = [own.view.shapes.dims(value) for value in own.view.tensors]
            feeds = [RNG.standard_normal([int(str(n)) for n in shape]).astype(np.float32) for shape in shapes]
            runners = [Runner(Planned(one), own.view, ISA) for one in (own, plan)]
            assert runners[1].unproved() == []
            (expected,), (alone,) = (runner(*feeds) for runner in runners)
            np.testing.assert_array_equal(expected, alone)
