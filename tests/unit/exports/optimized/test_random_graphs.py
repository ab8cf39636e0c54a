"""Random graphs of all operators: valid, the same in onnxruntime, and stable."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

import fuseline
from tests.draws import RNG
from tests.fuzz.generate import make_case
from tests.optimized import outputs

CASES = 25


def test_random_graphs():
    for _ in range(CASES):
        case = make_case(int(RNG.integers(1 << 30)), 20)
        optimized = fuseline.optimize(case.model)
        proto = optimized.to_proto()
        if _is_valid(case.model):
            onnx.checker.check_model(proto, full_check=True)
        assert not fuseline.optimize(proto).summary.done
        try:
            expected = outputs(case.model, case.feeds[0])
        except Exception as problem:  # noqa: BLE001 - what onnxruntime lacks or refuses; its classes have no common base
            # RuntimeError: a feed of a type that its Python interface has no word for
            assert "onnxruntime" in type(problem).__module__ or isinstance(problem, RuntimeError)
            continue
        _compare(expected, outputs(proto, case.feeds[0]))


def _is_valid(model: onnx.ModelProto) -> bool:
    """Drawn graphs may hold an operator that is younger than their opset."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def _compare(expected: list[Any], found: list[Any]) -> None:
    """Halves are rounded elsewhere where nodes are folded; all else is close to the last digits of f32."""
    for one, other in zip(expected, found, strict=True):
        if not isinstance(one, np.ndarray) or one.dtype.kind != "f":
            np.testing.assert_array_equal(one, other)
            continue
        scale = float(np.abs(one[np.isfinite(one)]).max(initial=1e-6))
        allowed = (2e-3 if one.dtype == np.float16 else 1e-5) * scale
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=allowed)
