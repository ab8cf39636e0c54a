"""How many bands: what a thread keeps of the rows that they share, and that the type of an image does not decide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from xdsl.ir import SSAValue

from fuseline.ir.target_description import TargetDescription
from fuseline.passes.dispatch.band_height import LEAST_GAIN, MOST_SLOWER_KEPT, BandChoice, choose_cached_bands
from fuseline.passes.dispatch.banded_sizes import BandedSizes
from fuseline.passes.dispatch.region_rows import RowRead
from tests.draws import RNG

ROW_NS = 7000.0
"""What a row of the image takes."""


def _sizes(rows: int, row_bytes: int, *, makes_rows: bool, window: int = 3) -> BandedSizes:
    """`rows` rows through a window of stride 1, as many results, and a maker that takes most of the time."""
    return BandedSizes(
        image_bytes=rows * row_bytes,
        image_rows=rows,
        rows=rows,
        read=RowRead(cast(SSAValue, None), axis=0, reach=window - 1),
        maker_ns=ROW_NS * rows,
        reader_ns=3000.0 * rows,
        handed_on=rows * row_bytes,
        makes_rows=makes_rows,
    )


def _choice(sizes: BandedSizes, threads: int = 1, **costs: Any) -> BandChoice:
    description = TargetDescription("one")
    costs = {"cached_bytes": 2**21, **costs}
    target = replace(description, threads=threads, costs=replace(description.costs, **costs))
    found = choose_cached_bands(sizes, target)
    assert isinstance(found, BandChoice)
    return found


@pytest.mark.parametrize("element", [1, 2, 4])
def test_rows_that_are_kept_cost_nothing_whatever_their_type(element: int) -> None:
    rows, elements = 8 * int(RNG.integers(8, 16)), int(RNG.integers(1000, 4000))
    choice = _choice(_sizes(rows, element * elements, makes_rows=True))
    assert choice.keeps and choice.is_within() and choice.most_slower == MOST_SLOWER_KEPT
    assert choice.recompute == 1.0 or len(choice.cut) > 1
    assert choice.loss_ns <= 2 * ROW_NS  # the border of the whole image


def test_rows_that_are_computed_twice_are_weighed_against_what_is_saved() -> None:
    rows, elements = 8 * int(RNG.integers(8, 16)), int(RNG.integers(1000, 4000))
    choice = _choice(_sizes(rows, elements, makes_rows=False))
    assert not choice.keeps and choice.loss_ns > 0 and not choice.is_within() and choice.recompute > 1
    assert choice.most_slower == -LEAST_GAIN


def test_each_thread_makes_the_rows_that_its_first_band_shares() -> None:
    rows = 8 * int(RNG.integers(8, 16))
    one, two = (_choice(_sizes(rows, 1000, makes_rows=True), threads) for threads in (1, 2))
    assert two.loss_ns == pytest.approx(2 * ROW_NS, abs=TargetDescription("one").costs.launch_ns + 500)
    assert two.loss_ns / two.whole_ns > 1.5 * one.loss_ns / one.whole_ns


def test_windows_that_do_not_overlap_keep_nothing() -> None:
    sizes = _sizes(96, 1000, makes_rows=True)
    assert sizes.keeps and not replace(sizes, read=replace(sizes.read, stride=3)).keeps
    assert not replace(sizes, makes_rows=False).keeps


def test_bands_are_no_lower_for_what_is_kept() -> None:
    rows = int(RNG.integers(60, 130))
    kept, computed = (_choice(_sizes(rows, 4000, makes_rows=each)) for each in (True, False))
    assert kept.cut == computed.cut
