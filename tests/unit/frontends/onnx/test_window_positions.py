"""Where windows stand along an axis: every place tried by hand."""

from __future__ import annotations

import pytest

from fuseline.frontends.onnx.window_positions import window_positions
from fuseline.ir.dim import Dim, evaluate, symbol
from tests.draws import RNG

SIZES = range(1, 12)


def _standing(size: int, span: int, stride: int, low: int, high: int) -> int:
    """Places at which a window is inside of the padded image."""
    return sum(start % stride == 0 and start + span <= low + size + high for start in range(low + size + high))


def _begun(size: int, span: int, stride: int, low: int, high: int) -> int:
    """Places, too, at which a window hangs over by less than a step, and does not start in the padding at the end."""
    ends = low + size + high + stride - 1
    return sum(start % stride == 0 and start + span <= ends for start in range(low + size))


def _at(size: Dim, n: int) -> int:
    return evaluate(size, {"n": n})


@pytest.mark.parametrize("padding", [(0, 0), (1, 1), (0, 2), (2, 0)])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("span", [1, 2, 3])
def test_each_size_has_the_places_that_can_be_counted(span: int, stride: int, padding: tuple[int, int]):
    for size in (size for size in SIZES if size + sum(padding) >= span):
        assert window_positions(size, span, stride, padding, ceil=False) == (_standing(size, span, stride, *padding), 0)
        count, extra = window_positions(size, span, stride, padding, ceil=True)
        assert isinstance(count, int) and isinstance(extra, int)
        assert count == (_begun(size, span, stride, *padding) if stride > 1 else _standing(size, span, 1, *padding))
        reach, given = (count - 1) * stride + span, size + sum(padding)
        assert extra == max(0, reach - given) and extra < stride


def test_a_symbolic_axis_has_those_of_each_of_its_sizes():
    n = symbol("n", 1, 40)
    span, stride = (int(number) for number in RNG.integers(1, 5, 2))
    padding = (int(RNG.integers(0, 3)), int(RNG.integers(4, 6)))
    for ceil in (False, True):
        count, extra = window_positions(n, span, stride, padding, ceil=ceil)
        for size in range(1, 41):
            found = _at(count, size), _at(extra, size)
            assert found == window_positions(size, span, stride, padding, ceil=ceil)


def test_the_last_window_does_not_start_in_the_padding():
    assert window_positions(3, 1, 2, (0, 4), ceil=False) == (4, 0)
    assert window_positions(3, 1, 2, (0, 4), ceil=True) == (2, 0)


def test_a_window_longer_than_the_image_has_no_place():
    assert window_positions(2, 5, 1, (1, 1), ceil=False) == (0, 0)
    count, _ = window_positions(1, 9, 2, (0, 0), ceil=False)
    assert isinstance(count, int) and count < 0
