"""Strips of lines that are long, or as long as the run has them: blocks of lines and pixels that fit the scratch."""

from __future__ import annotations

import pytest

from fuseline.analysis.strip_shapes import STRIP_BYTES, Extent, StripShape, strip_shape, widest_strip
from fuseline.ir.costs import ASSUMED_SIZE, LINE_BYTES
from tests.draws import RNG


def extent(count: int, *, known: bool = True, stride: int = 1, taps: int = 3) -> Extent:
    """Of a window of so many taps."""
    return Extent(count, lambda points: (points - 1) * stride + taps, known)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("taps", [1, 3, 7])
def test_whole_lines_where_they_are_known_and_fit(stride: int, taps: int) -> None:
    lines, pixels = (extent(int(RNG.integers(6, 17)), stride=stride, taps=taps) for _ in range(2))
    assert strip_shape(lines, pixels, LINE_BYTES) == StripShape(lines.count, pixels.count, 1.0)
    high = extent(100 * lines.count, stride=stride, taps=taps)
    shape = strip_shape(high, pixels, LINE_BYTES)
    assert shape is not None and lines.count < shape.lines < high.count and shape.pixels == pixels.count
    assert high.steps(shape.lines) * pixels.steps(pixels.count) * LINE_BYTES <= STRIP_BYTES


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("taps", [3, 5])
@pytest.mark.parametrize("pixel_bytes", [64, 128])
def test_blocks_elsewhere(known: bool, stride: int, taps: int, pixel_bytes: int) -> None:
    """What they evaluate again is less than lines of a tenth of their width, or of their height, would."""
    count = int(RNG.integers(2000, 3000)) if known else ASSUMED_SIZE
    lines, pixels = extent(ASSUMED_SIZE, stride=stride, taps=taps), extent(count, known=known, stride=stride, taps=taps)
    shape = strip_shape(lines, pixels, pixel_bytes)
    assert shape is not None and 1 < shape.lines and 1 < shape.pixels < count
    assert lines.steps(shape.lines) * pixels.steps(shape.pixels) * pixel_bytes <= STRIP_BYTES
    assert 1.0 < shape.often < (1 + 1.5 * (taps - 1) / (stride * min(shape.lines, shape.pixels))) ** 2


def test_no_strips_where_not_one_pixel_fits() -> None:
    assert strip_shape(extent(8, taps=50), extent(8, taps=50), LINE_BYTES) is None
    assert widest_strip(extent(8, taps=STRIP_BYTES), extent(8), 24, 4) is None


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("high", [12, 24])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_the_widest_strips_are_whole_cache_lines(size: int, high: int, stride: int) -> None:
    lines, pixels = extent(ASSUMED_SIZE, stride=stride), extent(ASSUMED_SIZE, known=False, stride=stride)
    shape = widest_strip(lines, pixels, high, size)
    assert shape is not None and shape.lines == high and shape.pixels * size % LINE_BYTES == 0
    room = STRIP_BYTES // (size * lines.steps(high))
    assert pixels.steps(shape.pixels) <= room < pixels.steps(shape.pixels + LINE_BYTES // size)
