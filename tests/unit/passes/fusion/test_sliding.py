"""Roots that slide over the blocks of a dispatch, and what that costs."""

from __future__ import annotations

import pytest
from xdsl.ir.affine import AffineMap

from fuseline.ir.build import dims_map
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.rule import Merge
from fuseline.passes.fusion.sliding import slid_root, sliding_ns
from fuseline.passes.fusion.tile_cost import compute_ns

from .programs import TARGET, Program, nodes_of


def _merged(p: Program) -> Group:
    """The first node and the last one over the loops that they share."""
    first, *_, last = nodes_of(p)
    return Merge(Group.of(first), Group.of(last), TARGET).shared


def test_a_window_and_a_product_over_its_channels_slide_over_the_pixels():
    p = Program((66, 16), (3, 16), (16, 8))
    group = _merged(p.done(p.matmul(p.depthwise(p.x[0], p.x[1]), p.x[2])))
    slid = slid_root(group)
    assert slid is not None and slid.kind.value == "depthwise"
    assert sliding_ns(group, TARGET) == pytest.approx(TARGET.costs.sliding_share * compute_ns(group, TARGET))


@pytest.mark.parametrize(("step", "taps", "slides"), [(1, 3, True), (2, 3, True), (3, 3, False), (6, 8, False)])
def test_windows_that_hardly_overlap_cost_what_tiles_do(step: int, taps: int, slides: bool):
    """Windows in larger steps, of a quarter in common at the most: each part of the image is met once or little more
    often."""
    p = Program((step * 20 + taps, 16), (taps, 16, 24), (24, 8))
    image_map = AffineMap.from_callable(lambda w, f, k, c: (w * step + k, c))
    maps = [image_map, dims_map(4, [2, 3, 1]), dims_map(4, [0, 1])]
    window = p.multiply_add(p.x[0], p.x[1], p.zeros(20, 24, emit=p.emit), maps, "pprr", p.emit)
    group = _merged(p.done(p.matmul(window, p.x[2])))
    assert slid_root(group) is not None
    expected = TARGET.costs.sliding_share * compute_ns(group, TARGET) if slides else 0
    assert sliding_ns(group, TARGET) == pytest.approx(expected)


def test_two_products_slide_over_nothing():
    p = Program((66, 16), (16, 24), (24, 8))
    group = _merged(p.done(p.matmul(p.matmul(p.x[0], p.x[1]), p.x[2])))
    assert slid_root(group) is None and sliding_ns(group, TARGET) == 0


def test_a_window_alone_has_no_blocks():
    p = Program((66, 16), (3, 16))
    group = Group.of(nodes_of(p.done(p.depthwise(p.x[0], p.x[1])))[0])
    assert slid_root(group) is not None and sliding_ns(group, TARGET) == 0


def test_windows_over_one_image_are_met_side_by_side():
    p = Program((66, 16), (3, 16), (3, 16))
    found = p.done(p.binary(p.depthwise(p.x[0], p.x[1]), p.depthwise(p.x[0], p.x[2]))).partition().groups
    assert len(found) == 1 and slid_root(found[0]) is not None and sliding_ns(found[0], TARGET) == 0


def test_a_window_over_what_the_group_makes_shares_no_loop_that_it_slides_over():
    p = Program((66, 16), (16, 24), (3, 24))
    group = _merged(p.done(p.depthwise(p.matmul(p.x[0], p.x[1]), p.x[2])))
    assert group.grid == (24,) and slid_root(group) is None
