"""`numerics` from the outside: three values that differ, errors end to end, an unknown one refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

import fuseline
from tests.graphs.onnx_builder import FLOAT, Builder

Array = NDArray[Any]
SIZE, CHANNELS = 192, 32


@cache
def convolutions() -> onnx.ModelProto:
    """Four 3 x 3 convolutions with bias and relu, the last with a residual."""
    b = Builder(3)
    first = x = b.node("Relu", _convolution(b, "x", 8))
    for _ in range(2):
        x = b.node("Relu", _convolution(b, x, CHANNELS))
    y = b.node("Add", _convolution(b, x, CHANNELS), first)
    return b.model({"x": (FLOAT, (1, 8, SIZE, SIZE))}, {y: (1, CHANNELS, SIZE, SIZE)})


def _convolution(b: Builder, x: str, channels: int) -> str:
    weights = b.weight(CHANNELS, channels, 3, 3, scale=(2 / (9 * channels)) ** 0.5)
    return b.node("Conv", x, weights, b.weight(CHANNELS, scale=0.1), pads=[1, 1, 1, 1])


def image() -> Array:
    return np.random.default_rng(5).standard_normal((1, 8, SIZE, SIZE), np.float32)


@cache
def exact() -> Array:
    """The model in float64."""
    arrays = [numpy_helper.to_array(weight).astype(np.float64) for weight in convolutions().graph.initializer]
    x, first = image().astype(np.float64), np.zeros(())
    for i, (weights, bias) in enumerate(zip(arrays[::2], arrays[1::2], strict=True)):
        padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
        taps = [
            np.einsum("oc,nchw->nohw", weights[:, :, j, k], padded[:, :, j : j + SIZE, k : k + SIZE])
            for j in range(3)
            for k in range(3)
        ]
        x = sum(taps) + bias[:, None, None]
        x = np.maximum(x, 0) if i < 3 else x + first
        first = x if i == 0 else first
    return x


@cache
def found(numerics: str) -> tuple[Array, dict[str, int]]:
    """The result and how many dispatches each kernel family took."""
    apart = {"fuse-row-bands": {"enabled": False}}  # bands of two convolutions are no minimal filtering
    model = fuseline.compile(convolutions(), target="cpu:avx2", threads=1, numerics=numerics, pass_options=apart)
    result = model.run({"x": image()})
    return np.asarray(next(iter(result.values()))), model.stats["families"]


def error(numerics: str) -> float:
    return float(np.sqrt(((found(numerics)[0] - exact()) ** 2).mean()))


@pytest.mark.skipif(
    "avx2" not in open("/proc/cpuinfo").read(), reason="compiled for AVX2, so that the choice is the same everywhere"
)
def test_three_values_that_differ():
    assert "winograd" not in found("strict")[1]
    assert found("default")[1]["winograd"] == found("fast")[1]["winograd"] == 4
    assert error("strict") < error("default") < error("fast")


@pytest.mark.skipif(
    "avx2" not in open("/proc/cpuinfo").read(), reason="compiled for AVX2, so that the choice is the same everywhere"
)
def test_errors_end_to_end():
    """Within 16 times those of direct convolutions, and within 1e-4 of the largest magnitude."""
    assert error("default") < 16 * error("strict")
    assert np.abs(found("default")[0] - exact()).max() < 1e-4 * np.abs(exact()).max()


@pytest.mark.parametrize("target", ["cpu", "interpreter", "null"])
def test_an_unknown_value_is_refused(target: str):
    with pytest.raises(fuseline.FuselineError) as caught:
        fuseline.compile(convolutions(), target=target, numerics="sloppy")
    assert caught.value.code == "E0501" and "strict" in str(caught.value)
