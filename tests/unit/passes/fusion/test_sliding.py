"""Roots that slide over the blocks of a dispatch, and what that costs."""

from __future__ import annotations

import pytest

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
