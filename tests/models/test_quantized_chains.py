"""Chains of products, longer than a dispatch takes, in floats and as tools quantise them, with a scale of each channel:
as many dispatches, and values are the interpreter's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.quantized_network import Network, assert_steps_apart


def _weights(n: Network, inputs: int, outputs: int) -> str:
    values = RNG.integers(-127, 128, (inputs, outputs)).astype(np.int8)
    scale = RNG.uniform(0.5, 1.5, outputs if n.by_channel else 1).astype(np.float32) / (90 * inputs**0.5)
    if n.element is None:
        return n.constant(values.astype(np.float32) * scale)
    return n("DequantizeLinear", n.constant(values), n.constant(scale if n.by_channel else scale[0]), axis=1)


def _product(n: Network, x: str, inputs: int, outputs: int) -> str:
    bias = n.constant(RNG.normal(0, 0.1, outputs).astype(np.float32))
    return n("Add", n("MatMul", x, _weights(n, inputs, outputs)), bias)


def _layer(n: Network, x: str, wide: int) -> str:
    """Up to a wide value and back, with a residual, and a scale and a shift of each channel."""
    channels = n.shape[1]
    up = n.quantized(n("Relu", _product(n, x, channels, wide)), n.parameters())
    down = n.quantized(n("Add", _product(n, up, wide, channels), x), n.parameters())
    scale, shift = (n.constant(RNG.normal(mean, 0.1, channels).astype(np.float32)) for mean in (1, 0))
    return n.quantized(n("Add", n("Mul", down, scale), shift), n.parameters())


def _chain(element: Any, shape: tuple[int, int], wide: int, layers: int, *, by_channel: bool) -> Network:
    n = Network(element, shape[1], by_channel=by_channel)
    n.shape = shape
    x = n.x
    for _ in range(layers):
        x = _layer(n, x, wide)
    return n


@pytest.mark.parametrize("element", [np.uint8, np.int8])
@pytest.mark.parametrize("by_channel", [False, True])
@pytest.mark.parametrize("layers", [4, 7, 11])
def test_a_chain_of_integers_is_as_many_dispatches_as_one_of_floats(element: Any, by_channel: bool, layers: int):
    shape, wide = (int(RNG.integers(90, 140)), int(RNG.integers(40, 80))), int(RNG.integers(90, 250))
    chains = [_chain(kind, shape, wide, layers, by_channel=by_channel) for kind in (None, element)]
    floats, integers = (
        fuseline.compile(n.whole(), target="null", threads=1, cache=False).stats["dispatches"] for n in chains
    )
    assert integers == floats == -(-2 * layers // 8)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("by_channel", [False, True])
def test_values_of_a_chain_of_integers(threads: int, by_channel: bool):
    shape, wide = (int(RNG.integers(30, 60)), int(RNG.integers(17, 40))), int(RNG.integers(40, 90))
    n = _chain(np.int8, shape, wide, 5, by_channel=by_channel)
    x = RNG.normal(0, 1, shape).astype(np.float32)
    (wanted,) = fuseline.compile(n.whole(), target="interpreter", fusion="none").run({"x": x}).values()
    (found,) = fuseline.compile(n.whole(), threads=threads, cache=False).run({"x": x}).values()
    assert_steps_apart(found, wanted)
