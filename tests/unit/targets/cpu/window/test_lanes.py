"""Which loop of a window's result the lanes run along."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.dialects.tensor import EmptyOp

from fuseline.analysis.linear_forms import Linear
from fuseline.analysis.operand_access import Bound, LinearAccess, Segment
from fuseline.ir.dim import Dim, symbol
from fuseline.targets.cpu.families.window.lanes import MOST_LANE_STEP, channel_lane, pixel_lane

SOURCE = EmptyOp([], TensorType(f32, [64])).results[0]
N, H, W, C = range(4)


def _segment(strides: Mapping[Any, Dim], padded: tuple[int, ...] = (), loop: int | None = None) -> Segment:
    bounds = tuple(Bound(Linear({axis: 1}), 8) for axis in padded)
    return Segment(loop, 0, 8, LinearAccess(SOURCE, Linear(strides), bounds))


def test_channels_lie_side_by_side():
    assert channel_lane([_segment({N: 512, H: 64, W: 8, C: 1}, padded=(H, W))], [N, H, W, C]) == C
    assert channel_lane([_segment({N: 512, C: 64, H: 8, W: 1}, padded=(H, W))], [N, C, H, W]) is None
    assert channel_lane([_segment({N: 512, C: 64, H: 8, W: 1})], [N, C, H, W]) == W


def test_the_innermost_of_several():
    assert channel_lane([_segment({H: 1, C: 1})], [H, C]) == C
    assert channel_lane([_segment({H: 1, C: 1})], [C, H]) == H
    assert channel_lane([_segment({C: 1})], []) is None


def test_a_concat_may_cut_the_lanes_only():
    """Every segment is read along the lanes, and none is cut along another loop."""
    parts = [_segment({H: 4, C: 1}, loop=C), _segment({H: 8, C: 1}, loop=C)]
    assert channel_lane(parts, [H, C]) == C
    assert channel_lane([parts[0], _segment({H: 8, C: 2}, loop=C)], [H, C]) is None
    assert channel_lane([_segment({H: 4, C: 1}, loop=H)], [H, C]) is None


@pytest.mark.parametrize(
    ("stride", "taken"),
    [(1, True), (MOST_LANE_STEP, True), (MOST_LANE_STEP + 1, False), (0, False), (-1, False), (symbol("n"), False)],
)
def test_pixels_a_few_elements_apart(stride: Dim, taken: bool):
    found = [_segment({C: 64, W: stride}, padded=(W,))]
    assert pixel_lane(found, [C, W]) == (W if taken else None)
    assert pixel_lane([_segment({C: stride, W: 64})], [W, C]) == (C if taken else None)
