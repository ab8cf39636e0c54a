"""Blocks of networks, quantised: one value is read by several, each of which computes integers of its own of it, and
there are as many dispatches as in f32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.quantized_network import Network, assert_steps_apart


def _split(n: Network) -> list[str]:
    """Both halves of a convolution's channels, with its scale."""
    half = n.shape[1]
    whole = n.conv(n.x, half, 2 * half, 1)
    left = n("Split", whole, outputs=2, axis=1, num_outputs=2)
    return [n.quantized(part, n.scales.get(whole, ())) for part in (left, left.replace("_out0", "_out1"))]


def _joined(n: Network, *parts: str) -> None:
    joined = n.quantized(n("Concat", *parts, axis=1), n.parameters())
    n.conv(joined, len(parts) * n.shape[1], 16, 1)


def _partial(n: Network) -> None:
    """Half of the channels goes through two convolutions (Wang et al., CSPNet)."""
    left, right = _split(n)
    _joined(n, left, right, n.conv(n.conv(right, n.shape[1], n.shape[1]), n.shape[1], n.shape[1]))


def _partial_residual(n: Network) -> None:
    left, right = _split(n)
    high = n.conv(n.conv(right, n.shape[1], n.shape[1]), n.shape[1], n.shape[1])
    _joined(n, left, right, n.quantized(n("Add", right, high), n.parameters()))


def _context(n: Network) -> None:
    """The image summed with weights that it makes itself, added to all of it (Cao et al., GCNet)."""
    channels, (height, width) = n.shape[1], n.shape[2:]
    flat = height * width
    weights = n.moved("Reshape", n.conv(n.x, channels, 1, 1), n.constant(np.array([1, flat, 1])))
    share = () if n.element is None else (n.constant(np.float32(0.03 / flat)), n.constant(np.zeros((), n.element)))
    weights = n.quantized(n("Softmax", weights, axis=1), share)
    rows = n.moved("Reshape", n.x, n.constant(np.array([1, channels, flat])))
    context = n.quantized(n("MatMul", rows, weights), n.parameters())
    context = n.moved("Reshape", context, n.constant(np.array([1, channels, 1, 1])))
    context = n.conv(n.conv(context, channels, channels // 2, 1), channels // 2, channels, 1)
    n.quantized(n("Add", n.x, context), n.parameters())


BLOCKS: dict[str, Callable[[Network], None]] = {
    "partial": _partial,
    "partial residual": _partial_residual,
    "context": _context,
}


@pytest.mark.parametrize("element", [np.uint8, np.int8])
@pytest.mark.parametrize("by_channel", [False, True])
@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_of_integers_is_as_many_dispatches_as_one_of_floats(name: str, by_channel: bool, element: Any) -> None:
    channels, threads = 2 * int(RNG.integers(8, 17)), int(RNG.integers(1, 3))
    wide, narrow = (Network(kind, channels, by_channel=by_channel) for kind in (None, element))
    narrow.shape = wide.shape
    BLOCKS[name](wide)
    BLOCKS[name](narrow)
    # One thread: of two, each computes the border of its half again, and that may cost more than a dispatch.
    floats, integers = (
        fuseline.compile(n.whole(), target="null", threads=1).stats["dispatches"] for n in (wide, narrow)
    )
    assert integers <= floats
    x = RNG.normal(0, 1, narrow.shape).astype(np.float32)
    (wanted,) = fuseline.compile(narrow.whole(), target="interpreter", fusion="none").run({"x": x}).values()
    (found,) = fuseline.compile(narrow.whole(), threads=threads).run({"x": x}).values()
    assert_steps_apart(found, wanted)
