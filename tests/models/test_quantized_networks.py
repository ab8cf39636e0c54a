"""Small networks as tools quantise them, a pair of QuantizeLinear and DequantizeLinear on every value: they form as
many dispatches as in f32, and values are the interpreter's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.quantized_network import Network, assert_steps_apart


def _upsampled(n: Network) -> None:
    scales = n.constant(np.array([1, 1, 2, 2], np.float32))
    n.conv(n.moved("Resize", n.conv(n.x, n.shape[1], 24), "", scales, mode="nearest"), 24, 16)


def _stretched(n: Network) -> None:
    size = n.constant(np.array([1, 24, n.shape[2] + 9, n.shape[3] + 4], np.int64))
    way = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    n.conv(n.moved("Resize", n.conv(n.x, n.shape[1], 24), "", "", size, **way), 24, 16, 1)


def _bordered(mode: str) -> Callable[[Network], None]:
    def build(n: Network) -> None:
        border = n.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64))
        first = n.conv(n.moved("Pad", n.x, border, mode=mode), n.shape[1], 24, around=0)
        n.conv(n.moved("Pad", first, border, mode=mode), 24, 16, around=0)

    return build


def _dense(n: Network) -> None:
    joined, channels = n.x, n.shape[1]
    for _ in range(3):
        layer = n.conv(joined, channels, 12)
        joined, channels = n.quantized(n("Concat", joined, layer, axis=1), n.parameters()), channels + 12
    n.conv(joined, channels, 16, 1)


def _skipped(n: Network) -> None:
    high = n.conv(n.x, n.shape[1], 16)
    low = n.conv(n("MaxPool", high, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1), 16, 32)
    size = n.constant(np.array([1, 32, *n.shape[2:]], np.int64))
    way = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    joined = n.quantized(n("Concat", high, n.moved("Resize", low, "", "", size, **way), axis=1), n.parameters())
    n.conv(joined, 48, 16)


def _fire(n: Network) -> None:
    few = n.conv(n.x, n.shape[1], 8, 1)
    parts = [n.conv(few, 8, 16, size) for size in (1, 3)]
    joined = n.quantized(n("Concat", *parts, axis=1), n.parameters())
    n.conv(n.moved("MaxPool", joined, kernel_shape=[3, 3], strides=[2, 2]), 32, 16, 1)


def _attended(n: Network) -> None:
    rows = n.moved("Reshape", n.conv(n.x, n.shape[1], 32), n.constant(np.array([2, 2, 8, -1], np.int64)))
    first, second = (n.moved("Gather", rows, n.constant(np.array(i, np.int64)), axis=0) for i in range(2))
    scores = n("MatMul", n.moved("Transpose", first, perm=[0, 2, 1]), second)
    n.quantized(scores, n.parameters())


def _branches(*windows: tuple[int, int]) -> Callable[[Network], None]:
    """Branches over the argument itself, each with a window of its own: a size and how far its taps are apart."""

    def build(n: Network) -> None:
        parts = [n.conv(n.x, n.shape[1], 12, size, apart=apart) for size, apart in windows]
        n.conv(n.quantized(n("Concat", *parts, axis=1), n.parameters()), 12 * len(parts), 16, 1)

    return build


def _residual(n: Network) -> None:
    high = n.conv(n.conv(n.x, n.shape[1], 24), 24, n.shape[1])
    n.quantized(n("Add", n.x, high), n.parameters())


def _chain(n: Network) -> None:
    n.conv(n.conv(n.conv(n.x, n.shape[1], 32), 32, 24, 1), 24, 16)


NETWORKS: dict[str, Callable[[Network], None]] = {
    "dense": _dense, "edge": _bordered("edge"), "skipped": _skipped, "fire": _fire, "attended": _attended,
    "upsampled": _upsampled, "reflect": _bordered("reflect"), "stretched": _stretched, "residual": _residual,
    "chain": _chain, "inception": _branches((1, 1), (3, 1), (5, 1)),
    "dilated": _branches((1, 1), (3, 2), (3, 4)),
}  # fmt: skip
OFTEN = {"skipped": 2, "attended": 2}
"""Dispatches more than in f32: the argument's, and the upsampling, or operands of a product, where reading them in
place would take longer."""

AGGRESSIVE = {"dense": 1, "skipped": 1}
"""The same at `aggressive`: an argument that a later concat reads as well, and the image of a window, are stored."""

QUICK = 5
"""The first of them run by default, the others are slow."""


@pytest.mark.parametrize("element", [np.uint8, np.int8])
@pytest.mark.parametrize("by_channel", [False, True])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if i < QUICK else pytest.mark.slow) for i, name in enumerate(NETWORKS)]
)
def test_integers_form_as_many_dispatches_as_floats(name: str, by_channel: bool, element: Any):
    """But for the argument, which may be quantised in a dispatch of its own where that is on record: by the price, or
    for several readers. At `aggressive` it never is."""
    channels, threads = 2 * int(RNG.integers(8, 13)), int(RNG.integers(1, 3))
    wide, narrow = (Network(kind, channels, by_channel=by_channel) for kind in (None, element))
    narrow.shape = wide.shape
    NETWORKS[name](wide)
    NETWORKS[name](narrow)
    program = fuseline.compile(narrow.whole(), threads=threads)
    floats = fuseline.compile(wide.whole(), threads=threads)
    assert program.stats["dispatches"] <= floats.stats["dispatches"] + OFTEN.get(name, 1)
    if program.stats["dispatches"] > floats.stats["dispatches"]:
        missed = [word for word in program.record.decisions if word.verdict == "missed"]
        assert {word.code for word in missed if word.rule == "read-in-place"} & {"unprofitable", "multi-use"}
    aggressive = fuseline.compile(narrow.whole(), threads=threads, fusion="aggressive")
    floats = fuseline.compile(wide.whole(), threads=threads, fusion="aggressive")
    assert aggressive.stats["dispatches"] <= floats.stats["dispatches"] + AGGRESSIVE.get(name, 0)
    x = RNG.normal(0, 1, narrow.shape).astype(np.float32)
    (wanted,) = fuseline.compile(narrow.whole(), target="interpreter", fusion="none").run({"x": x}).values()
    (strict,) = fuseline.compile(narrow.whole(), threads=threads, numerics="strict").run({"x": x}).values()
    np.testing.assert_array_equal(strict, wanted)
    for compiled in (program, aggressive):
        (found,) = compiled.run({"x": x}).values()
        assert_steps_apart(found, wanted)
    assert len(np.unique(wanted)) > 4
