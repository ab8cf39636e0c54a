"""Models of one operator by ONNX's reference evaluator with our operators in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fuseline.frontends.onnx.reference import evaluator_with
from tests.draws import RNG
from tests.one_node import Array, Value, by_onnxruntime, feeds_of, one_node

F32, F16 = np.float32, np.float16
ML = "ai.onnx.ml"


def normal(*shape: int, dtype: Any = F32) -> Array:
    """Numbers around 0."""
    return np.asarray(RNG.standard_normal(shape)).astype(dtype)


def run(op_type: str, inputs: Sequence[Value], attributes: Mapping[str, Any] | None = None, **more: Any) -> list[Any]:
    """The outputs by the reference evaluator with our operators."""
    model = one_node(op_type, inputs, attributes, **more)
    return list(evaluator_with((), model).run(None, feeds_of(inputs)))  # pyright: ignore


def agree(
    op_type: str,
    inputs: Sequence[Value],
    attributes: Mapping[str, Any] | None = None,
    *,
    wanted: Sequence[Any] | None = None,
    tolerance: float = 1e-4,
    **more: Any,
) -> None:
    """It gives `wanted`, or what onnxruntime answers."""
    if wanted is None:
        wanted = by_onnxruntime(one_node(op_type, inputs, attributes, **more), feeds_of(inputs))
    for found, expected in zip(run(op_type, inputs, attributes, **more), wanted, strict=True):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        if expected.dtype.kind in "OUST":
            assert found.tolist() == expected.tolist()
        else:
            wide = found.astype(np.float64), np.asarray(expected).astype(np.float64)
            np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance)
