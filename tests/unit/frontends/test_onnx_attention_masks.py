"""Attention beside its mask's type: what a mask of integers, which hold no minus infinity, leaves of a causal one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.interop.onnx_reference import evaluator
from tests.one_node import feeds_of, one_node

INTEGERS = ("int8", "uint8", "int16", "uint32", "int64")


def _causal(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], mask: NDArray[Any]) -> NDArray[Any]:
    """softmax(q k / sqrt(d) + mask, no key behind its query) v, in float64."""
    scores = q.astype(np.float64) @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]) + mask.astype(np.float64)
    scores = np.where(np.tri(*mask.shape, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("opset", [23, 24])
def test_integers_beside_a_causal_mask(dtype: str, opset: int) -> None:
    """Native, and as the host has it: later keys are never seen, whatever the integers are."""
    rng = np.random.default_rng(len(dtype))
    q, k, v = (rng.standard_normal((2, 3, size, 5)).astype(np.float32) for size in (4, 7, 7))
    mask = rng.integers(0 if dtype.startswith("u") else -3, 4, (4, 7)).astype(dtype)
    model, feeds = one_node("Attention", [q, k, v, mask], {"is_causal": 1}, opset=opset), feeds_of([q, k, v, mask])
    on_the_host: Any = evaluator(model).run(None, feeds)
    for found in (fuseline.compile(model, threads=1).run(feeds)["o0"], on_the_host[0]):
        np.testing.assert_allclose(found, _causal(q, k, v, mask), rtol=1e-4, atol=1e-5)
