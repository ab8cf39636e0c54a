"""One form for products that are equal up to extents: which have one, and that each computes what it computes with a
plan of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.combinators.prefetch import NONE
from fuseline.targets.cpu.emit.partial_sums import partial_size
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.contraction.shared_form import SharedForm
from fuseline.targets.cpu.families.contraction.shared_plan import shared_plans
from fuseline.targets.cpu.families.family import Plan, Shared
from fuseline.targets.cpu.isa import Machine, machine
from fuseline.targets.cpu.tiles import RowSplit, fits, split_in_tiles
from fuseline.targets.target import Refusal
from tests.draws import RNG
from tests.graphs.program import Program
from tests.kernels import Runner

AVX512, HERE = machine("avx512"), machine()


class Planned(ContractionFamily):
    """Contractions with one plan."""

    def __init__(self, plan: ContractionPlan) -> None:
        super().__init__()
        self.plan = plan

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        assert view is self.plan.view
        return self.plan


def own_plan(rows: int, columns: int, steps: int, *, constant: bool = True, isa: Machine = AVX512) -> ContractionPlan:
    p = Program((rows, steps), (steps, columns), constants=[1] if constant else [])
    plan = ContractionFamily().accepts(p.dispatch(p.matmul(p.x[0], p.x[1])), isa)
    assert isinstance(plan, ContractionPlan)
    return plan


def shared(*products: tuple[int, int, int]) -> list[Shared]:
    return shared_plans([own_plan(*product) for product in products], AVX512)


def contractions(found: Shared) -> Sequence[ContractionPlan]:
    assert all(isinstance(plan, ContractionPlan) for plan in found.plans)
    return found.plans  # pyright: ignore[reportReturnType]


def test_products_of_many_sizes_have_one_form():
    (found,) = shared((196, 256, 64), (784, 128, 96), (49, 320, 192))
    assert found.members == (0, 1, 2) and max(found.lost) <= AVX512.costs.sharing_loss
    plans = contractions(found)
    assert len({(plan.tile, plan.form) for plan in plans}) == 1
    assert [plan.prefetch for plan in plans] == [NONE] * 3
    assert all(plan.split is not None and plan.split.height == plan.tile.rows for plan in plans)


@pytest.mark.parametrize(("steps", "in_partial_sums"), [((64, 96), False), ((768, 1536), True)])
def test_a_form_says_what_the_code_of_all_does(steps: tuple[int, int], in_partial_sums: bool):
    """Rows that fill tiles of the height and one less; panels that are whole, and one of a vector."""
    (found,) = shared((196, 256, steps[0]), (196, 144, steps[1]))
    plans = contractions(found)
    form, width = plans[0].form, plans[0].width
    assert isinstance(form, SharedForm) and plans[1].form == form
    assert {columns % width for columns in (256, 144)} - {0} == set(form.rests)
    assert (form.height, form.in_partial_sums) == (plans[0].tile.rows, in_partial_sums)
    assert form.short or all(plan.split is not None and not plan.split.short for plan in plans)


def test_tiles_leave_room_for_the_columns_of_the_next_step():
    (found,) = shared((196, 256, 64), (784, 128, 96))
    for plan in contractions(found):
        assert fits(plan.tile.rows, plan.tile.vectors, AVX512, temporaries=1 + plan.tile.vectors)


def test_long_sums_keep_their_parts():
    own = [own_plan(196, 256, steps) for steps in (512, 768, 1536)]
    found = shared_plans(own, AVX512)
    assert [sorted(one.members) for one in found] == [[0, 1, 2]]
    periods = [max(1, plan.prefetch.period) for plan in own]
    expected = [partial_size(steps, 1, period) for steps, period in zip((512, 768, 1536), periods, strict=True)]
    assert [plan.partial_steps for plan in contractions(found[0])] == expected


@pytest.mark.parametrize(
    "products",
    [
        [],
        [(196, 256, 64)],
        [(196, 256, 64), (196, 256, 63)],  # steps that are no pairs
        [(196, 256, 64), (1, 256, 64)],  # rows that are no tiles of a common height
    ],
)
def test_others_stay_alone(products: list[tuple[int, int, int]]):
    assert shared(*products) == []


def test_columns_that_are_no_whole_vectors_are_the_last_panel_of_a_form():
    (found,) = shared((196, 256, 64), (196, 24, 64), (784, 40, 64))
    form = contractions(found)[0].form
    assert form is not None and found.members == (0, 1, 2)
    assert {columns % contractions(found)[0].width for columns in (256, 24, 40)} - {0} == set(form.rests)


def test_columns_that_only_the_run_knows_stay_alone():
    assert shared_plans([own_plan(rows, 256, 64, constant=False) for rows in (196, 784)], AVX512) == []


def test_rows_in_tiles_of_one_height():
    assert split_in_tiles(12, 13) == RowSplit(13, 0, 1)
    for height in range(2, 14):
        for count in range(1, 9):
            short = int(RNG.integers(0, count + 1))
            rows = count * height - short
            split = split_in_tiles(rows, height)
            assert split.tall * height + split.short * (height - 1) == rows


def drawn() -> tuple[int, int, int]:
    """Rows, columns and steps of a product."""
    steps = int(RNG.choice([32, 48, 130, 384, 512, 600]))
    return int(RNG.integers(150, 300)), 16 * int(RNG.integers(1, 9)), steps


def test_each_computes_what_it_does_alone():
    products = [drawn() for _ in range(3)]
    own = [own_plan(*product, isa=HERE) for product in products]
    for found in shared_plans(own, HERE):
        for number, plan in zip(found.members, contractions(found), strict=True):
            rows, columns, steps = products[number]
            a, b = RNG.standard_normal((rows, steps)), RNG.standard_normal((steps, columns))
            feeds = [a.astype(np.float32), b.astype(np.float32)]
            runners = [Runner(Planned(one), plan.view, HERE) for one in (own[number], plan)]
            assert runners[1].unproved() == []
            (expected,), (alone,) = (runner(*feeds) for runner in runners)
            np.testing.assert_array_equal(expected, alone)
