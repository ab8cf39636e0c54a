"""Sigmoid and softplus: exponentials of what is never positive, computed as such, over all numbers there are."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.targets.cpu.emit.shortcuts import exponents_of_magnitudes
from tests.graphs.onnx_text import onnx_model

from .generics import empty, function, generic, tensor
from .texts import parse

MAGNITUDE = "%a = math.absf %i0 : f32\n%n = arith.negf %a : f32\n%v = math.exp %n : f32"
NEGATED = "%n = arith.negf %i0 : f32\n%v = math.exp %n : f32"
KEPT = "%a = math.absf %i0 : f32\n%v = math.exp %a : f32"


@pytest.mark.parametrize(("body", "count"), [(MAGNITUDE, 1), (NEGATED, 0), (KEPT, 0)])
def test_only_exponentials_of_negated_magnitudes(body: str, count: int) -> None:
    t = tensor((7, 5))
    lines = [
        empty("e", (7, 5)),
        generic("%y", [("%x", t)], [("%e", t)], ["d0, d1", "d0, d1"], "pp", body, [("%v", "f32")]),
    ]
    view = parse(function([("x", (7, 5), "f32")], [], "\n".join(lines), [("%y", t)]))
    assert len(exponents_of_magnitudes(view.members)) == count


def unary(op: str, x: NDArray[np.float32]) -> NDArray[np.float32]:
    text = f"(float{list(x.shape)} x) => (y) {{ y = {op}(x) }}"
    return np.asarray(fuseline.compile(onnx_model(text, opset=21, ir_version=10), threads=1)(x))


def everywhere() -> NDArray[np.float32]:
    """Both signs, all magnitudes, and what is no ordinary number."""
    bits = np.random.default_rng(4).integers(0, 1 << 32, 20_003, dtype=np.uint64).astype(np.uint32)
    ordinary = (20 * np.random.default_rng(5).standard_normal(20_000)).astype(np.float32)
    return np.concatenate(
        [
            bits.view(np.float32),
            ordinary,
            np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 88.5, -88.5, -104.0], np.float32),
        ]
    )


def test_sigmoid_everywhere() -> None:
    x = everywhere()
    with np.errstate(all="ignore"):
        expected = 1 / (1 + np.exp(-x.astype(np.float64)))
    np.testing.assert_allclose(unary("Sigmoid", x), expected, rtol=5e-7, atol=1.2e-38)


def test_softplus_everywhere() -> None:
    x = everywhere()
    with np.errstate(all="ignore"):
        expected = np.logaddexp(0, x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(unary("Softplus", x), expected, rtol=5e-7, atol=1e-7)
