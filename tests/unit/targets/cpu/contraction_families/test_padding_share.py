"""How much of a window meets the image, and that columns are not asked for where little of it does."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.targets.cpu.combinators.prefetch import NONE
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.padding_share import share_inside
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
