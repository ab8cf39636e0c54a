"""Concats in quantised networks: each part is written in place by the dispatch that makes it, as in f32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.quantized_network import Network

POOLS = {
    "average": ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    "largest": ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2]}),
}


def _block(element: Any, pool: str, parts: int, seed: int, *, requantised: bool) -> Any:
    """Branches of one and two convolutions, their concat, and what reads it: two products and a pool."""
    RNG.bit_generator.state = np.random.default_rng(seed).bit_generator.state
    net = Network(element, 32, by_channel=False)
    start = net.conv(net.x, 32, 32)
    ends = [net.conv(start, 32, 64, 1)]
    for number in range(parts - 1):
        ends.append(net.conv(net.conv(start, 32, 16 * (number + 2)), 16 * (number + 2), 64))
    joined = net("Concat", *ends, axis=1)
    joined = net.quantized(joined, net.parameters() if requantised else net.scales.get(ends[0], ()))
    op, attributes = POOLS[pool]
    branches = [net.conv(joined, 64 * parts, 48, 1), net.conv(joined, 64 * parts, 32, 1)]
    pooled = net.quantized(net(op, joined, **attributes), net.scales.get(joined, ()))
    totals = [net("GlobalAveragePool", branch) for branch in (*branches, net.conv(pooled, 64 * parts, 32, 1))]
    net("Concat", *totals, axis=1)
    return net.whole()


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("parts", (2, 3))
@pytest.mark.parametrize("requantised", (False, True))
@pytest.mark.parametrize("target", ("null", "cpu:avx512vnni"))
def test_counts_are_those_of_f32(pool: str, parts: int, requantised: bool, target: str):
    seed = int(RNG.integers(1 << 31))
    models = [_block(element, pool, parts, seed, requantised=requantised) for element in (np.uint8, None)]
    counts = [len(fuseline.compile(model, target=target, threads=1).record.dispatches) for model in models]
    assert counts[0] <= counts[1]


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("threads", (1, 2))
def test_values(pool: str, threads: int):
    model = _block(
        np.uint8, pool, int(RNG.integers(2, 4)), int(RNG.integers(1 << 31)), requantised=bool(RNG.integers(2))
    )
    program = fuseline.compile(model, threads=threads)
    sizes = [size for size in program.inputs[0].shape if isinstance(size, int)]
    x = RNG.standard_normal(sizes).astype(np.float32)
    (found,) = program.run({"x": x}).values()
    (wanted,) = fuseline.compile(model, target="interpreter").run({"x": x}).values()
    assert np.isfinite(found).all() and not np.array_equal(found, np.zeros_like(found))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=0.01)
