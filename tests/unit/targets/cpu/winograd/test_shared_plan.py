"""One form for convolutions by the same minimal filtering: which have one, and that each computes what it computes with
a plan of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fuseline.dispatch.view import DispatchView
from fuseline.ir.costs import MachineCosts
from fuseline.targets.cpu.families.family import Plan, Refusal, Shared
from fuseline.targets.cpu.families.winograd.family import WinogradFamily
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan
from fuseline.targets.cpu.families.winograd.shared_form import SharedForm
from fuseline.targets.cpu.families.winograd.shared_plan import shared_plans
from fuseline.targets.cpu.isa import Machine, machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.merging.merge import merge
from tests.draws import RNG
from tests.kernels import Runner
from tests.unit.targets.cpu.winograd.convolutions import Case, Forced

ISA = replace(machine(), costs=MachineCosts(sharing_loss=1.0))
LANES = ISA.lanes("f32")


class Planned(WinogradFamily):
    """Convolutions with one plan."""

    def __init__(self, plan: WinogradPlan) -> None:
        super().__init__()
        self.plan = plan

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        assert view is self.plan.view
        return self.plan


def plan_of(case: Case, family: Forced) -> WinogradPlan:
    plan = family.accepts(case.view, ISA)
    assert isinstance(plan, WinogradPlan)
    return plan


def of_channels(size: int, vectors: int, columns: int = 4, **forced: int) -> tuple[Case, WinogradPlan]:
    """An image of `size x size` pixels, of so many vectors of channels and of columns."""
    case = Case((size, size), (vectors * LANES, columns * LANES))
    return case, plan_of(case, Forced(**forced))


def shared(*plans: WinogradPlan) -> list[Shared]:
    return shared_plans(plans, ISA)


def formed(found: Shared) -> list[WinogradPlan]:
    return [plan for plan in found.plans if isinstance(plan, WinogradPlan)]


def test_images_that_differ_in_everything_have_one_form():
    plans = [of_channels(*one)[1] for one in ((16, 2), (19, 3), (27, 8))]
    (found,) = shared(*plans)
    assert found.members == (0, 1, 2) and len({plan.form for plan in formed(found)}) == 1
    form = formed(found)[0].form
    assert form is not None and not form.whole_pieces and form.whole_tiles == (False, False)


def test_a_form_says_what_the_code_of_all_does():
    """Channels of one piece and of several, blocks of tiles of one height and of one less."""
    for plans in ([of_channels(26, 2), of_channels(26, 4)], [of_channels(19, 2), of_channels(33, 8)]):
        (found,) = shared(*(plan for _, plan in plans))
        (form,) = {plan.form for plan in formed(found)}
        assert isinstance(form, SharedForm) and len(form.whole_tiles) == 2
        assert {plan.rows.height for plan in formed(found)} == {form.height}
        assert form.short == any(plan.rows.short for plan in formed(found))


@pytest.mark.parametrize("tiles", [(16, 25), (4, 9), (7, 7)])
def test_blocks_are_tiles_of_one_height(tiles: tuple[int, int]):
    plans = [of_channels(33, 2, tiles=count)[1] for count in tiles]
    (found,) = shared(*plans)
    assert len({plan.rows.height for plan in formed(found)}) == 1
    assert [plan.rows.tall * plan.rows.height + plan.rows.short * (plan.rows.height - 1) for plan in formed(found)] == [
        *tiles
    ]


def test_another_filtering_stays_alone():
    assert shared(of_channels(33, 2, outputs=2)[1], of_channels(33, 2, outputs=4)[1]) == []


def test_channels_that_are_no_whole_vectors_stay_alone():
    odd = plan_of(Case((17, 17), (LANES + 2, 2 * LANES)), Forced())
    assert shared(of_channels(17, 1, 2)[1], odd) == []


def test_a_price_beyond_the_limit_is_none():
    plans = [of_channels(33, 2, tiles=count)[1] for count in (16, 25)]
    strict = replace(ISA, costs=MachineCosts(sharing_loss=0.001))
    assert shared_plans(plans, strict) == []


def test_long_sums_keep_their_parts():
    few, many = of_channels(9, 4)[1], of_channels(9, 512 // LANES)[1]
    (found,) = shared(few, many)
    assert [plan.partial_steps for plan in formed(found)] == [few.loops.channels, 256]


def drawn() -> tuple[Case, WinogradPlan]:
    size, vectors, columns = int(RNG.integers(6, 25)), int(RNG.integers(1, 10)), int(RNG.integers(1, 9))
    tiles = int(RNG.integers(2, 30))
    return of_channels(size, vectors, columns, tiles=tiles, passes=int(RNG.integers(1, 3)))


def test_each_computes_what_it_does_alone():
    drawings = [drawn() for _ in range(3)]
    for found in shared(*(plan for _, plan in drawings)):
        for number, plan in zip(found.members, formed(found), strict=True):
            case, own = drawings[number]
            arrays = case.arrays()
            runners = [Runner(Planned(one), own.view, ISA) for one in (own, plan)]
            assert runners[1].unproved() == []
            (expected,), (alone,) = (runner(*arrays) for runner in runners)
            np.testing.assert_array_equal(expected, alone)


def test_their_kernels_are_one():
    (found,) = shared(*(of_channels(*one)[1] for one in ((16, 2), (19, 3), (27, 8))))
    kernels = []
    for plan in formed(found):
        kernel = KernelBuilder("k", ISA, keeps_loops=True)
        Planned(plan).emit(plan, kernel)
        kernels.append(kernel.finish())
    assert len(merge(kernels, "k", ISA).numbers) == 3
