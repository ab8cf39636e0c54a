"""How much of a window meets the image, and that columns are not asked for where little of it does."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.targets.cpu.combinators.prefetch import NONE
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.padding_share import share_inside, share_of_tiles
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.contraction.prefetch import LEAST_INSIDE
from fuseline.targets.cpu.isa import machine
from tests.kernels import plan_of

from .test_convolution import Case


def _expected(case: Case) -> float:
    """Of a channel of ones, padded: how many ones all windows see, of all that they look at."""
    height, width = case.image[1:3]
    padded = np.pad(np.ones((height, width)), case.padding)
    taps = [(i * case.dilation[0], j * case.dilation[1]) for i in range(case.filter[0]) for j in range(case.filter[1])]
    rows, columns = (case.out[i] * case.stride[i - 1] for i in (1, 2))
    seen = [padded[i : i + rows : case.stride[0], j : j + columns : case.stride[1]] for i, j in taps]
    return float(np.mean(seen))


@pytest.mark.parametrize(
    "case",
    [
        Case((14, 14), (3, 3), (320, 256), pad=(1, 1)),
        Case((9, 11), (5, 3), (320, 256), pad=(2, 2), stride=2),
        Case((17, 17), (3, 3), (320, 256), pad=(12, 12), dilation=12),
        Case((17, 17), (3, 3), (320, 256), pad=(36, 36), dilation=36),
        Case((14, 14), (3, 3), (320, 256)),
    ],
    ids=["same", "strided", "twelve apart", "beyond the image", "no padding"],
)
def test_only_windows_that_meet_the_image_ask_ahead(case: Case):
    plan = plan_of(ConvolutionFamily(), case.view, machine("avx2"))
    assert isinstance(plan, ContractionPlan)
    share = share_inside(plan.loops)
    assert share == pytest.approx(_expected(case))
    assert (plan.prefetch == NONE) == (share < LEAST_INSIDE)


TAPS = {
    "six apart": Case((17, 17), (3, 3), (32, 32), pad=(6, 6), dilation=6),
    "twelve apart": Case((17, 17), (3, 3), (32, 32), pad=(12, 12), dilation=12),
    "strided": Case((11, 23), (5, 7), (32, 32), pad=(3, 3), stride=2),
    "more after than before": Case((9, 14), (3, 5), (32, 32), pad=(0, 4)),
}


@pytest.mark.parametrize("name", TAPS)
def test_a_tile_takes_the_taps_that_one_of_its_rows_meets(name: str):
    case = TAPS[name]
    plan = plan_of(ConvolutionFamily(), case.view, machine("avx2"))
    assert isinstance(plan, ContractionPlan)
    share = share_of_tiles(plan.loops)
    assert share is not None
    rows, taps = case.out[2], case.filter[1]
    at = np.add.outer(np.arange(rows) * case.stride[1] - case.padding[0], np.arange(taps) * case.dilation[1])
    inside = (at >= 0) & (at < case.image[2])
    for first in range(rows):
        for height in range(1, rows - first + 1):
            met = np.flatnonzero(inside[first : first + height].any(axis=0))
            assert share(first, height) == pytest.approx((met.max() - met.min() + 1 if met.size else 0) / taps)


@pytest.mark.parametrize(
    "case",
    [
        Case((14, 14), (3, 3), (32, 32), pad=(1, 1)),
        Case((14, 14), (3, 3), (32, 32)),
        Case((17, 17), (3, 3), (32, 32), pad=(6, 6), dilation=6, value=1.5),
    ],
    ids=["no two rows miss a tap", "no padding", "padding that is not 0"],
)
def test_tiles_that_take_all_steps(case: Case):
    plan = plan_of(ConvolutionFamily(), case.view, machine("avx2"))
    assert isinstance(plan, ContractionPlan)
    assert share_of_tiles(plan.loops) is None


def test_a_panel_that_many_tiles_read_stays_in_the_second_level_cache():
    case = Case((17, 17), (3, 3), (1280, 256), pad=(6, 6), dilation=6)
    isa = machine("avx512")
    plan = plan_of(ConvolutionFamily(), case.view, isa)
    assert isinstance(plan, ContractionPlan)
    assert plan.tile.vectors == 2 or plan.width * 9 * 1280 * 4 <= isa.l2_bytes
