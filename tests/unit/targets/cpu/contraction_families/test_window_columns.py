"""Windows whose columns are combined before their pixels, against NumPy; and when that is chosen."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.targets.cpu.families.window.loops import window_loops
from fuseline.targets.cpu.families.window.plan import WindowPlan, plan_window, shares_columns
from fuseline.targets.cpu.isa import machine
from fuseline.targets.target import Refusal
from tests.kernels import Runner, random

from .test_window import BODIES, FAMILY, Case, taps

SHARED = {
    "3x3": Case((10, 12), (3, 3), 24, pad=(1, 1)),
    "3x3 stride 2": Case((11, 14), (3, 3), 16, stride=2, pad=(1, 1)),
    "5x5": Case((13, 13), (5, 5), 21, pad=(2, 2)),
    "9x9": Case((11, 17), (9, 9), 8, pad=(4, 4)),
    "7x4 dilated": Case((17, 19), (7, 4), 5, dilation=2, pad=(1, 2)),
    "volume": Case((5, 4, 6), (3, 3, 3), 10, pad=(1, 1)),
}
APART = {
    "no overlap": Case((8, 8), (2, 2), 17, stride=2),
    "one row": Case((40,), (7,), 12, pad=(3, 3)),
    "rows that touch": Case((12, 12), (3, 1), 9),
}


def plan(case: Case, body: str = "max") -> WindowPlan:
    found = FAMILY.accepts(case.pooling(body), machine())
    assert isinstance(found, WindowPlan)
    return found


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", SHARED)
def test_shared_columns(name: str, body: str):
    assert plan(SHARED[name], body).columns_first
    SHARED[name].check_pooling(body)


@pytest.mark.parametrize("name", APART)
def test_nothing_to_share(name: str):
    assert not plan(APART[name]).columns_first
    APART[name].check_pooling("max")


def test_a_filter_keeps_pixels_apart():
    loops = window_loops(SHARED["3x3"].depthwise())
    assert not isinstance(loops, Refusal)
    assert not shares_columns(loops, machine())
    found = plan_window(loops, machine())
    assert isinstance(found, WindowPlan) and not found.columns_first


@pytest.mark.parametrize("name", SHARED)
def test_not_a_number_stays_in_its_windows(name: str):
    case = SHARED[name]
    x = random(case.image, 5)
    x.reshape(-1)[np.random.default_rng(6).choice(x.size, 5, replace=False)] = np.nan
    low, high = case.padding
    padded = np.pad(x, [(0, 0), *[(low, high)] * case.rank, (0, 0)], constant_values=-np.inf)
    expected = np.max(np.stack(taps(padded, case.window, case.stride, case.dilation)), axis=0)
    np.testing.assert_array_equal(Runner(FAMILY, case.pooling("max"))(x)[0], expected.astype(np.float32))
