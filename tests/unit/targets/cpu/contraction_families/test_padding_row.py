"""The padding row: as long as the loops inside an edge check reach, and where there can be none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops
from fuseline.targets.cpu.families.contraction.padding_row import (
    PADDING_ROW_LIMIT,
    padding_row_elements,
    padding_row_steps,
)
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.isa import machine
from tests.graphs.program import Program
from tests.kernels import plan_of

from .test_convolution import Case
from .test_operand_modes import loops_of, product


def _loops(case: Case) -> ContractionLoops:
    plan = plan_of(ConvolutionFamily(), case.view, machine("avx2"))
    assert isinstance(plan, ContractionPlan)
    return plan.loops


def test_what_has_no_edges_needs_none():
    loops = product(32, 64, 48)
    assert padding_row_elements(loops) == 0 and padding_row_steps(loops) == PADDING_ROW_LIMIT
    assert padding_row_elements(_loops(Case((14, 14), (3, 3), (16, 24)))) == 0


@pytest.mark.parametrize(("channels", "window"), [(16, 3), (24, 5), (7, 3)])
def test_an_edge_check_is_followed_by_the_channels_of_a_pixel(channels: int, window: int):
    """Rows of the window that lie outside are left out; behind the check of a column are its channels."""
    pad = window // 2
    for image, size in (((14, 14), (window, window)), ((50,), (window,))):
        loops = _loops(Case(image, size, (channels, 24), pad=(pad, pad)))
        assert (padding_row_elements(loops), padding_row_steps(loops)) == (channels, channels)


@pytest.mark.parametrize("dilation", [1, 3])
@pytest.mark.parametrize(("channels", "window"), [(16, 3), (7, 5)])
def test_pad_values_that_add_something_are_read_for_a_whole_row_of_the_window(
    channels: int, window: int, dilation: int
):
    """Behind the check of a row come the columns of the window, `dilation` pixels apart, and their channels."""
    pad = dilation * (window // 2)
    loops = _loops(Case((14, 14), (window, window), (channels, 24), pad=(pad, pad), value=1.5, dilation=dilation))
    assert padding_row_elements(loops) == (dilation * (window - 1) + 1) * channels
    assert padding_row_steps(loops) == channels


@pytest.mark.parametrize(("channels", "reach"), [(PADDING_ROW_LIMIT, PADDING_ROW_LIMIT), (PADDING_ROW_LIMIT + 1, None)])
def test_a_reach_beyond_the_limit_is_packed_instead(channels: int, reach: int | None):
    assert padding_row_elements(_loops(Case((3, 3), (3, 3), (channels, 8), pad=(1, 1)))) == reach


def _line(taps: Callable[[AffineExpr, AffineExpr], AffineExpr], size: int) -> ContractionLoops:
    """`y[p, o] += x[taps(p, t), c] * w[t, c, o]` over 20 points, padded by 2 on both sides; `x` has `size`."""
    p = Program((size, 16), (5, 16, 24), constants=[1])
    point, out, tap, channel = (AffineExpr.dimension(i) for i in range(4))
    places = [(taps(point, tap), channel), (tap, channel, out), (point, out)]
    maps = [AffineMap(4, 0, place) for place in places]
    return loops_of(p, p.multiply_add(p.pad(p.x[0], [2, 0], [2, 0]), p.x[1], p.zeros(20, 24), maps, "pprr"))


def test_a_window_that_is_read_backwards_has_no_padding_row():
    """What follows the check of a tap lies before it."""
    assert padding_row_elements(_line(lambda point, tap: point + tap, 20)) == 16
    assert padding_row_elements(_line(lambda point, tap: point - tap + 4, 20)) is None
