"""Operators that run on the host through their own lowering where onnxruntime is not installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.ops.coupling import MOST_CLASSES
from fuseline.frontends.onnx.ops.tree_scores import DEEPEST
from fuseline.interop.onnx_reference import ReferenceOperator
from tests.one_node import by_onnxruntime, feeds_of, one_node
from tests.unit.frontends.ml.test_pairs import ML, X, machine


def _stairs(levels: int) -> dict[str, Any]:
    """A tree of one leaf on each level: of the first step that is larger than the feature."""
    nodes = 2 * levels + 1
    inner = [i % 2 == 0 and i < nodes - 1 for i in range(nodes)]
    return {
        "nodes_treeids": [0] * nodes,
        "nodes_nodeids": list(range(nodes)),
        "nodes_featureids": [0] * nodes,
        "nodes_modes": ["BRANCH_LT" if each else "LEAF" for each in inner],
        "nodes_values": [float(i // 2) if inner[i] else 0.0 for i in range(nodes)],
        "nodes_truenodeids": [i + 1 if inner[i] else 0 for i in range(nodes)],
        "nodes_falsenodeids": [i + 2 if inner[i] else 0 for i in range(nodes)],
        "target_treeids": [0] * (levels + 1),
        "target_nodeids": [i for i in range(nodes) if not inner[i]],
        "target_ids": [0] * (levels + 1),
        "target_weights": np.random.default_rng(3).standard_normal(levels + 1).tolist(),
        "n_targets": 1,
    }


def test_a_tree_deeper_than_a_native_body() -> None:
    x = np.random.default_rng(4).uniform(-2, DEEPEST + 42, (50, 1)).astype(np.float32)
    model = one_node("TreeEnsembleRegressor", [x], _stairs(DEEPEST + 40), domain=ML, opset=3)
    np.testing.assert_allclose(ReferenceOperator(model).run([x])[0], by_onnxruntime(model, feeds_of([x]))[0], rtol=1e-6)


def test_more_classes_than_a_native_body() -> None:
    model = one_node("SVMClassifier", [X], machine(MOST_CLASSES + 1, "RBF", fitted=True), domain=ML, opset=1, outputs=2)
    labels, scores = ReferenceOperator(model).run([X])
    wanted = by_onnxruntime(model, feeds_of([X]))
    np.testing.assert_array_equal(labels, wanted[0])
    np.testing.assert_allclose(scores, wanted[1], rtol=1e-4, atol=1e-6)


def test_what_the_lowering_does_not_take_is_refused() -> None:
    x = np.ones((2, 3), np.float32)
    model = one_node("Scaler", [x], {"offset": [1.0, 2.0], "scale": [1.0]}, domain=ML, opset=1)
    with pytest.raises(FuselineError, match="E0105.*: 2 offsets and 1 scales for 3 features"):
        ReferenceOperator(model).run([x])
    three = {"coefficients": [1.0] * 9, "classlabels_ints": [1, 2]}
    model = one_node("LinearClassifier", [x], three, domain=ML, opset=1, outputs=2)
    with pytest.raises(FuselineError, match="E0106: .*cannot run LinearClassifier: unsupported-labels: 3 scores"):
        ReferenceOperator(model).run([x])
