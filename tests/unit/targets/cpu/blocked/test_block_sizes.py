"""Sizes of blocks along a loop that runs across the lanes: whole vectors where these make blocks of one length."""

from __future__ import annotations

import pytest

from fuseline.targets.cpu.families.blocked.block_sizes import block_sizes
from fuseline.targets.cpu.isa import machine


@pytest.mark.parametrize("extent", [96, 144, 240, 480])
def test_blocks_of_one_length_are_whole_vectors(extent: int):
    sizes = block_sizes(extent, 1, machine("avx512"), whole=True)
    assert all(size % 16 == 0 for size in sizes)
    assert any(extent % size == 0 for size in sizes if size < extent)


@pytest.mark.parametrize(("extent", "size"), [(72, 36), (184, 92), (200, 100)])
def test_one_length_goes_before_whole_vectors(extent: int, size: int):
    assert size in block_sizes(extent, 1, machine("avx512"), whole=True)
    assert size not in block_sizes(extent, 1, machine("avx512"), whole=False)
