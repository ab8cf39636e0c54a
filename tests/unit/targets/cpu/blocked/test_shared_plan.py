"""One form for chains of products that are equal up to extents: each sub-kernel has one, and each computes what it
computes alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fuseline.dispatch.view import DispatchView
from fuseline.ir.costs import MachineCosts
from fuseline.targets.cpu.families.blocked.family import BlockedFamily
from fuseline.targets.cpu.families.blocked.plan import BlockedPlan
from fuseline.targets.cpu.families.blocked.shared_plan import shared_blocked_plans
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.family import Plan, Shared
from fuseline.targets.cpu.isa import Machine, machine
from fuseline.targets.target import Refusal
from tests.kernels import Runner, arrays_for

from .programs import attention, product_and_norm

ISA = replace(machine(), costs=MachineCosts(sharing_loss=1.0))


class Planned(BlockedFamily):
    """Chains with one plan."""

    def __init__(self, plan: BlockedPlan) -> None:
        super().__init__()
        self.plan = plan

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        assert view is self.plan.view
        return self.plan


def own_plan(view: DispatchView) -> BlockedPlan:
    plan = BlockedFamily().accepts(view, ISA)
    assert isinstance(plan, BlockedPlan)
    return plan


def normed(*sizes: tuple[int, int, int]) -> list[BlockedPlan]:
    return [own_plan(product_and_norm(*size, constant=True)) for size in sizes]


def products(found: Shared) -> list[list[ContractionPlan]]:
    """The plans of the products of each dispatch."""
    assert all(isinstance(plan, BlockedPlan) for plan in found.plans)
    return [
        [one.plan for one in plan.sub_kernels if isinstance(one.plan, ContractionPlan)]
        for plan in found.plans if isinstance(plan, BlockedPlan)
    ]  # fmt: skip


def test_products_of_a_chain_have_one_form():
    (found,) = shared_blocked_plans(normed((196, 256, 64), (784, 128, 96)), ISA)
    assert found.members == (0, 1) and all(0 <= lost <= ISA.costs.sharing_loss for lost in found.lost)
    forms = [[plan.form for plan in mine] for mine in products(found)]
    assert forms[0] == forms[1] and forms[0] and all(form is not None for form in forms[0])


def test_constants_are_asked_for_as_the_form_has_them():
    own = normed((196, 256, 64), (784, 128, 96))
    (found,) = shared_blocked_plans(own, ISA)
    for plan, mine in zip(found.plans, own, strict=True):
        assert set(plan.constant_layouts) == set(mine.constant_layouts) and plan.constant_layouts


@pytest.mark.parametrize("plans", [[], [(196, 256, 64)], [(196, 256, 64), (196, 256, 63)]])
def test_others_stay_alone(plans: list[tuple[int, int, int]]):
    assert shared_blocked_plans(normed(*plans), ISA) == []


def test_chains_of_other_sub_kernels_stay_alone():
    chain = own_plan(attention([3], 64, 64, 32, heads_last=False, masked=False))
    assert shared_blocked_plans([chain, *normed((196, 256, 64))], ISA) == []


def test_each_computes_what_it_does_alone():
    own = normed((150, 96, 64), (203, 128, 96))
    (found,) = shared_blocked_plans(own, ISA)
    for number, plan in zip(found.members, found.plans, strict=True):
        assert isinstance(plan, BlockedPlan)
        feeds = arrays_for(plan.view)
        runners = [Runner(Planned(one), plan.view, ISA) for one in (own[number], plan)]
        assert runners[1].unproved() == []
        (expected,), (alone,) = (runner(*feeds) for runner in runners)
        np.testing.assert_allclose(alone, expected, rtol=1e-5, atol=1e-5)
