"""Convolutions and what pools or multiplies them as one kernel, for blocks of images and channels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith

from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import dims_map, identity_map
from fuseline.targets.cpu.families.blocked.plan import BlockedPlan
from tests.graphs.program import Program
from tests.kernels import Array

from .programs import (
    convolved,
    depthwise,
    expected_convolution,
    expected_pool,
    expected_row_norm,
    over_image,
    pooled,
    row_norm,
)
from .run import check


def averaged(n: int | str, h: int, w: int, inputs: int, channels: int, *, keeps_image: bool) -> DispatchView:
    p = Program((n, h, w, inputs), (3, 3, inputs, channels), (n, h, w, channels), constants=[1])
    y = p.add(convolved(p, p.x[0], p.x[1], n, h, w, channels), p.x[2])
    y = p.relu(y)
    total = over_image(p, y, n, channels)
    return p.dispatch(total, y) if keeps_image else p.dispatch(total)


def expected_average(x: Array, filter_: Array, residual: Array) -> tuple[Any, Any]:
    y = np.maximum(expected_convolution(x, filter_) + residual, 0)
    return y.sum((1, 2)), y


@pytest.mark.parametrize("keeps_image", [True, False])
@pytest.mark.parametrize("channels", [1, 20, 48, 64])
def test_a_convolution_and_a_global_pool(channels: int, keeps_image: bool):
    check(averaged(2, 7, 9, 5, channels, keeps_image=keeps_image), lambda *a: expected_average(*a)[: 1 + keeps_image])


@pytest.mark.parametrize("n", [1, 3])
def test_a_batch_known_at_run_time(n: int):
    check(averaged("n", 7, 5, 4, 24, keeps_image=True), expected_average, {"n": n}, threads=(1, 8))


@pytest.mark.parametrize("channels", [20, 48])
def test_a_depthwise_convolution_and_a_global_pool(channels: int):
    p = Program((2, 7, 9, channels), (3, 3, channels), constants=[1])
    y = p.relu(depthwise(p, p.x[0], p.x[1], 2, 7, 9, channels))
    check(p.dispatch(over_image(p, y, 2, channels), y), lambda x, f: expected_average(x, f, np.zeros(())))


@pytest.mark.parametrize("channels", [20, 48])
def test_two_depthwise_convolutions_of_one_image(channels: int):
    shape = (2, 13, 9, channels)
    p = Program(shape, (3, 3, channels), (3, 3, channels), constants=[1, 2])
    first, second = (depthwise(p, p.x[0], p.x[i], *shape) for i in (1, 2))
    product = p.elementwise(
        [first, second], p.empty(*shape), lambda b: b.op(arith.MulfOp, b.args[0], b.args[1]), [identity_map(4)] * 3
    )
    check(p.dispatch(product), lambda x, f, g: [expected_convolution(x, f) * expected_convolution(x, g)])


@pytest.mark.parametrize(("h", "w", "size"), [(12, 8, 2), (13, 9, 2), (9, 12, 3)])
@pytest.mark.parametrize("channels", [16, 20])
def test_a_convolution_and_a_pool_of_windows_side_by_side(h: int, w: int, size: int, channels: int):
    p = Program((2, h, w, 5), (3, 3, 5, channels), constants=[1])
    y = p.relu(convolved(p, p.x[0], p.x[1], 2, h, w, channels))
    view = p.dispatch(pooled(p, y, size, 2, h // size, w // size, channels))
    check(view, lambda x, f: [expected_pool(np.maximum(expected_convolution(x, f), 0), size)])


def test_a_filter_is_packed_as_a_whole_and_read_from_the_panel_of_the_block():
    for plan in check(averaged(1, 7, 5, 6, 64, keeps_image=False), lambda *a: expected_average(*a)[:1], threads=(2, 4)):
        assert isinstance(plan, BlockedPlan) and plan.tiles and plan.sub_kernels[0].plan.notes["rhs"] == "constant"


@pytest.mark.parametrize("groups", [2, 5])
def test_a_batch_of_constants_is_cut_by_block(groups: int):
    """Row norms of a batch of products, each with a constant of its own: `w` is read from the batch's place."""
    m, n, k = 9, 24, 7
    p = Program((groups, m, k), (groups, k, n), constants=[1])
    maps = [dims_map(4, [0, 1, 3]), dims_map(4, [0, 3, 2]), dims_map(4, [0, 1, 2])]
    y = p.multiply_add(p.x[0], p.x[1], p.zeros(groups, m, n), maps, "pppr")
    plans = check(
        p.dispatch(row_norm(p, y, n)),
        lambda a, b: [expected_row_norm(a.astype(np.float64) @ b)],
        threads=(1, 2, groups),
    )
    assert any(isinstance(plan, BlockedPlan) and plan.tiles for plan in plans)
    assert all(isinstance(plan, BlockedPlan) and plan.sub_kernels[0].plan.notes["rhs"] == "constant" for plan in plans)


@pytest.mark.parametrize("channels", [72, 184])
def test_channels_of_an_image_that_is_read_by_windows_are_cut_alike(channels: int):
    """The image has to be made in blocks of channels: none of them is shorter than the others, whose code would have to
    wait for the run to say by how much."""
    for plan in _window_behind_a_product(65, 8, channels):
        assert plan.tiles and [tile.rest for tile in plan.tiles if tile.full == channels] == [None]


@pytest.mark.parametrize("channels", [328, 728])
def test_channels_of_few_pixels_are_cut_so_that_the_product_finds_its_weights_packed(channels: int):
    """Blocks of one length that end inside of a vector would have them packed in every run."""
    for plan in _window_behind_a_product(6, channels, channels):
        assert plan.sub_kernels[0].plan.notes["rhs"] == "constant"


def _window_behind_a_product(h: int, inputs: int, channels: int) -> list[BlockedPlan]:
    """A product of pixels, relu, and a 3x3 depthwise convolution."""
    p = Program((1, h, h, inputs), (inputs, channels), (3, 3, channels), constants=[1, 2])
    maps = [dims_map(5, [0, 1, 2, 4]), dims_map(5, [4, 3]), dims_map(5, [0, 1, 2, 3])]
    y = p.relu(p.multiply_add(p.x[0], p.x[1], p.zeros(1, h, h, channels), maps, "ppppr"))
    view = p.dispatch(depthwise(p, y, p.x[2], 1, h, h, channels))
    plans = check(view, lambda x, w, f: [expected_convolution(np.maximum(x @ w, 0), f)], threads=(1,))
    found = [plan for plan in plans if isinstance(plan, BlockedPlan)]
    assert found and len(found) == len(plans)
    return found
