"""Whether neighbouring windows have much in common, against the elements that they read."""

from __future__ import annotations

import pytest
from xdsl.ir.affine import AffineExpr

from fuseline.analysis.window_overlap import MOST_SHARED, has_overlapping_windows, overlaps
from fuseline.ir.dim import symbol
from tests.draws import RNG
from tests.unit.analysis.generics import view_of

D = [AffineExpr.dimension(i) for i in range(3)]
PRODUCT = "%m = arith.mulf %a0, %a1 : f32\n %s = arith.addf %a2, %m : f32\n linalg.yield %s : f32"


@pytest.mark.parametrize("_", range(20))
def test_the_share_is_that_of_the_elements_read(_: int):
    step, taps = (int(n) for n in RNG.integers(1, 9, 2))
    first, second = set(range(taps)), set(range(step, step + taps))
    shared = len(first & second) / taps
    assert overlaps(D[0] * step + D[1], {0}, (50, taps, 4)) == (shared > MOST_SHARED)


def test_the_loop_of_the_smallest_step_decides():
    coordinate = D[0] * 8 + D[1] * 1 + D[2]
    assert overlaps(coordinate, {0, 1}, (4, 8, 3))
    assert not overlaps(coordinate, {0}, (4, 1, 8))


def test_what_is_not_linear_or_not_known_overlaps():
    assert overlaps((D[0] + D[1]) // 2, {0}, (8, 3, 3))
    assert overlaps(D[0] * 9 + D[1], {0}, (8, symbol("n", 1, 9), 3))


@pytest.mark.parametrize(
    ("image", "taps", "expected"),
    [
        ("d0 + d2, d3", 3, True),
        ("d0 * 2 + d2, d3", 3, True),
        ("d0 * 2 + d2, d3", 1, False),
        ("d0 * 2 + d2, d3", 2, False),
        ("d0 * 16 + d2, d3", 16, False),
        ("d0 + d2 * 7, d3", 5, True),
    ],
)
def test_windows_of_a_convolution(image: str, taps: int, expected: bool):
    view = view_of(
        [image, "d2, d3, d1", "d0, d1"],
        "pprr",
        ["tensor<300x4xf32>", f"tensor<{taps}x4x5xf32>"],
        ["tensor<15x5xf32>"],
        PRODUCT,
    )
    assert has_overlapping_windows(view, (15, 5, taps, 4)) is expected


def test_a_product_has_no_windows():
    view = view_of(
        ["d0, d2", "d2, d1", "d0, d1"], "ppr", ["tensor<7x5xf32>", "tensor<5x6xf32>"], ["tensor<7x6xf32>"], PRODUCT
    )
    assert not has_overlapping_windows(view, (7, 6, 5))
