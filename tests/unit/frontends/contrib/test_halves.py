"""onnxruntime's own operators on 16-bit floats: computed in f32 and rounded once, as onnxruntime does, under every
`--numerics`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fuseline
from tests.unit.frontends.contrib.calls import Array, ints, normal, one_call, ort

HALF = np.dtype(np.float16)
SMALL, LARGE = 2.0**-9, 2.0**5
"""Scales at which cubes and sums of products of halves underflow and overflow."""


def _weights(columns: int, blocks: int) -> list[Array]:
    """MatMulNBits: codes in 4 bits in blocks of 16, and scales."""
    return [ints(256, columns, blocks, 8, dtype=np.uint8), np.abs(normal(columns * blocks)) + 0.1]


def _calls(name: str) -> tuple[Sequence[Array | None], dict[str, Any]]:
    """The inputs, in f32, and attributes."""
    rows, x, vector = normal(2, 5, 8), normal(3, 8), normal(8)
    tables = [normal(9, 8), normal(7, 8), normal(2, 8), vector, normal(8)]
    calls: dict[str, tuple[Sequence[Array | None], dict[str, Any]]] = {
        "Gelu": ([x], {}),
        "BiasGelu": ([x, vector], {}),
        "FastGelu": ([x * 4, vector], {}),
        "QuickGelu": ([x], {"alpha": 1.3}),
        "SkipLayerNormalization": ([rows * SMALL, normal(1, 5, 8) * SMALL, vector, normal(8), normal(8) * SMALL], {}),
        "SkipSimplifiedLayerNormalization": ([rows * 16 * LARGE, normal(5, 8), vector, normal(8)], {}),
        "EmbedLayerNormalization": ([ints(9, 2, 5), ints(2, 2, 5), *tables], {}),
        "FusedMatMul": ([x * LARGE, normal(5, 8) * LARGE], {"transB": 1, "alpha": 1e-3}),
        "FusedGemm": ([x, normal(8, 5), normal(5)], {"activation": "LeakyRelu", "activation_alpha": 0.3}),
        "FusedConv": ([normal(1, 2, 6, 5), normal(3, 2, 3, 3), normal(3)], {"activation": "Tanh"}),
        "MatMulNBits": ([normal(3, 32), *_weights(6, 2), None, None, normal(6)], {"K": 32, "N": 6, "block_size": 16}),
        "RotaryEmbedding": ([rows, np.array([2]), normal(9, 2), normal(9, 2)], {"num_heads": 2}),
        "Attention": ([rows, normal(8, 24), normal(24)], {"num_heads": 2, "unidirectional": 1}),
        "MultiHeadAttention": ([rows, normal(2, 6, 8), normal(2, 6, 8), normal(24)], {"num_heads": 2}),
    }
    return calls[name]


CALLS = [
    *("Gelu", "BiasGelu", "FastGelu", "QuickGelu", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
    *("EmbedLayerNormalization", "FusedMatMul", "FusedGemm", "FusedConv", "MatMulNBits", "RotaryEmbedding"),
    *("Attention", "MultiHeadAttention"),
]


def _asked(name: str) -> tuple[int, ...]:
    """The outputs that onnxruntime's schema insists on."""
    return (0, 1) if name == "EmbedLayerNormalization" else (0,)


def _constants(name: str) -> tuple[int, ...]:
    return (1, 2) if name == "MatMulNBits" else ()


def _ours(name: str, inputs: list[Any], attributes: dict[str, Any], **options: Any) -> Array:
    held = _constants(name)
    program = fuseline.compile(one_call(name, inputs, constants=held, **attributes), threads=1, **options)
    assert not program.record.host_ops
    feeds = {f"i{i}": x for i, x in enumerate(inputs) if x is not None and i not in held}
    return next(iter(program.run(feeds).values()))


def _in(dtype: Any, inputs: Sequence[Array | None]) -> list[Any]:
    return [x if x is None or x.dtype.kind != "f" else x.astype(dtype) for x in inputs]


@pytest.mark.parametrize("name", CALLS)
def test_an_operator_rounds_once(name: str) -> None:
    """Between this and the same in f32 lies the rounding of the result, and no more than f32 has on the way."""
    inputs, attributes = _calls(name)
    halves = _in(HALF, inputs)
    wanted = _ours(name, _in(np.float32, halves), attributes, target="interpreter").astype(np.float64)
    near = 0.51 * float(ml_dtypes.finfo(HALF).eps) * np.abs(wanted) + 2.0**-24 + 1e-4 * np.abs(wanted).max()
    for numerics, target in (("strict", "cpu"), ("strict", "interpreter"), ("default", "cpu")):
        found = _ours(name, halves, attributes, numerics=numerics, target=target)
        assert found.dtype == HALF
        difference = np.abs(found.astype(np.float64) - wanted)
        assert (difference <= near).all(), (numerics, target, (difference - near).max())


@pytest.mark.parametrize("name", CALLS)
def test_onnxruntime_gives_the_same(name: str) -> None:
    inputs, attributes = _calls(name)
    halves, held = _in(HALF, inputs), _constants(name)
    proto = one_call(name, halves, constants=held, asked=_asked(name), **attributes)
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {f"i{i}": x for i, x in enumerate(halves) if x is not None and i not in held}
    wanted: Any = session.run(None, feeds)[0]
    found = _ours(name, halves, attributes)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    close = 2e-3 * max(1.0, float(np.abs(wanted).astype(np.float64).max()))
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=2e-3, atol=close)
