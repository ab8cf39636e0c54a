"""Operators in ONNX's reference evaluator that this compiler's lowerings answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from fuseline.frontends.onnx.reference import LOWERED, evaluator_with
from fuseline.interop.lowered_operators import (
    LOWERED_OPERATORS,
    PROGRAMS_KEPT,
    _program,  # pyright: ignore[reportPrivateUsage] - how often it is read is seen nowhere else
)
from tests.draws import RNG
from tests.one_node import by_onnxruntime, feeds_of, one_node

ML = "ai.onnx.ml"


def test_one_class_for_each() -> None:
    assert sorted((each.op_domain, each.__name__) for each in LOWERED_OPERATORS) == sorted(LOWERED)


def _answered(op_type: str, inputs: list[Any], attributes: Any, **more: Any) -> list[Any]:
    model = one_node(op_type, inputs, attributes, **more)
    evaluator = evaluator_with(LOWERED_OPERATORS, model)
    assert isinstance(evaluator, ReferenceEvaluator)
    return list(evaluator.run(None, feeds_of(inputs)))  # pyright: ignore


def _classifier(labels: dict[str, Any], classes: int) -> dict[str, Any]:
    weights = RNG.standard_normal(4 * classes).astype(np.float32).tolist()
    return {"coefficients": weights, "intercepts": RNG.standard_normal(classes).tolist(), **labels}


@pytest.mark.parametrize("labels", [{"classlabels_ints": [3, 5, 9]}, {"classlabels_strings": ["a", "b", "c"]}])
def test_labels_may_be_strings(labels: dict[str, Any]) -> None:
    if (ML, "LinearClassifier") not in LOWERED:
        pytest.skip("answered otherwise")
    x = RNG.standard_normal((6, 4)).astype(np.float32)
    attributes = _classifier(labels, 3)
    found = _answered("LinearClassifier", [x], attributes, domain=ML, opset=1, outputs=2)
    wanted = by_onnxruntime(one_node("LinearClassifier", [x], attributes, domain=ML, opset=1, outputs=2), feeds_of([x]))
    assert found[0].tolist() == list(wanted[0])
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-4, atol=1e-5)


def test_programs_are_kept() -> None:
    x = RNG.standard_normal((6, 4)).astype(np.float32)
    attributes: dict[str, Any] = {"offset": [0.5], "scale": [2.0]}
    before = _program.cache_info()
    for _ in range(3):
        (found,) = _answered("Scaler", [x], attributes, domain=ML, opset=1)
        np.testing.assert_allclose(found, (x - 0.5) * 2, rtol=1e-5)
    after = _program.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (1, 2)
    assert after.maxsize == PROGRAMS_KEPT
