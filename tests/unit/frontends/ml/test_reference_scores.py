"""What the NumPy reference, which answers where onnxruntime is not installed, makes of one score for two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.interop.onnx_reference import evaluator
from tests.native import assert_as_onnxruntime
from tests.one_node import by_onnxruntime, one_node
from tests.unit.frontends.ml.ensembles import Ensemble, rows

X = rows(20)
FOREST = Ensemble(8, 5, 4)
LINEAR = {"coefficients": [0.3, -1.0, 2.0, 0.5, -0.25], "intercepts": [0.1], "classlabels_ints": [5, 2]}
MACHINE = {
    "classlabels_ints": [5, 2],
    "coefficients": [0.5, -1.0, 0.75],
    "support_vectors": [float(x) for x in np.random.default_rng(4).standard_normal(15)],
    "vectors_per_class": [2, 1],
    "rho": [0.2],
    "kernel_type": "LINEAR",
    "kernel_params": [0.0, 0.0, 0.0],
}


def trees(labels: list[int], each: list[list[int]], sign: int = 0) -> dict[str, Any]:
    attributes = FOREST.attributes("class", each, sign != 0) | {"classlabels_int64s": labels}
    return attributes | {"class_weights": [(sign or 1) * weight for weight in attributes["class_weights"]]}


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "linear": ("LinearClassifier", LINEAR),
    "support vectors": ("SVMClassifier", MACHINE),
    "trees, a decision": ("TreeEnsembleClassifier", trees([4, 9], FOREST.each(1))),
    "trees, a share": ("TreeEnsembleClassifier", trees([4, 9], FOREST.each(1), 1)),
    "trees, one class": ("TreeEnsembleClassifier", trees([4], FOREST.each(1), -1)),
    "trees, low scores": ("TreeEnsembleClassifier", trees([4, 9, 1], [[2] for _ in FOREST.leaves], -1)),
}


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("name", CASES)
def test_as_onnxruntime(name: str, post: str):
    op_type, attributes = CASES[name]
    model = one_node(op_type, [X], attributes | {"post_transform": post}, domain="ai.onnx.ml", opset=1, outputs=2)
    ours: Any = evaluator(model).run(None, {"i0": X})
    labels, scores = by_onnxruntime(model, {"i0": X})
    assert ours[0].tolist() == labels.tolist()
    np.testing.assert_allclose(ours[1], scores, rtol=1e-4, atol=1e-5)


def test_one_class_natively() -> None:
    """Its side of 0, whatever it is called."""
    attributes = trees([4], FOREST.each(1), -1)
    assert_as_onnxruntime("TreeEnsembleClassifier", [X], attributes=attributes, domain="ai.onnx.ml", opset=1, outputs=2)
