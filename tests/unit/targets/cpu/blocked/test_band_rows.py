"""Rows of a band that are moved, and those outside of the image, on any shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.targets.cpu.families.blocked.band_edges import Edge
from fuseline.targets.cpu.families.blocked.band_image import BandImage
from fuseline.targets.cpu.families.blocked.band_rows import BandRows
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from tests.draws import RNG
from tests.kernels import Array, call

AVX2 = machine("avx2")


def _run(image: BandImage, array: Array, number: int, dtype: str, emit: Any) -> Array:
    """What is in a copy of `array` behind the code of `emit`, for band `number`."""
    kernel = KernelBuilder("kernel", AVX2)
    memory = kernel.binding(0, dtype, array.size, writable=True)
    kernel.loop(kernel.begin, kernel.end, 1, lambda at: emit(BandRows(kernel, image, memory, at)))
    found = array.copy()
    call(kernel.finish(), AVX2, [found], (), number, number + 1)
    return found


def _image(kept: int, edge: Edge | None = None) -> tuple[BandImage, Array]:
    outer, rows, columns = int(RNG.integers(1, 4)), kept + int(RNG.integers(1, 9)), int(RNG.integers(1, 40))
    unknown: Any = None
    shape = (outer, 1, rows, columns)
    return BandImage(unknown, 0, 1, 2, shape, kept, edge), RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("kept", [1, 2, 5])
def test_the_last_rows_become_the_first(kept: int):
    """Also where they overlap: of 5 that are kept 1 is new."""
    image, array = _image(kept)
    found = _run(image, array, int(RNG.integers(0, 9)), "f32", BandRows.move)
    expected = array.copy()
    expected[:, :, :kept] = array[:, :, array.shape[2] - kept :]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("dtype", "element"), [("f32", np.float32), ("f16", np.float16), ("i8", np.int8)])
@pytest.mark.parametrize("part", [0, 1])
def test_rows_outside_hold_the_number(part: int, dtype: str, element: Any):
    """Bands that begin above the image, lie in it, end below it, or are all outside."""
    unknown: Any = None
    for number in range(5):
        step = int(RNG.integers(1, 5))
        first, value = int(RNG.integers(0, 9)), int(RNG.integers(-5, 5))
        end = first + int(RNG.integers(1, 12))
        image, array = _image(2, Edge(unknown, 0, step, first, end, value))
        array = (array * 10).astype(element)
        rows = image.parts[part]
        found = _run(image, array, number, dtype, lambda band, rows=rows: band.put_edge(rows))
        at = step * number + np.arange(image.rows)
        mine = (np.arange(image.rows) >= rows.offset) & (np.arange(image.rows) < rows.offset + rows.extent)
        expected = array.copy()
        expected[:, :, mine & ((at < first) | (at >= end))] = value
        np.testing.assert_array_equal(found, expected)
