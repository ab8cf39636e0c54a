"""SVMClassifier of ai.onnx.ml natively, against onnxruntime: decisions, votes, and probabilities coupled from those of
all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.frontends.onnx.ops.coupling import MOST_CLASSES
from tests.native import assert_as_onnxruntime
from tests.one_node import by_onnxruntime, feeds_of, one_node

ML = "ai.onnx.ml"
WIDTH = 5
X = np.random.default_rng(9).standard_normal((13, WIDTH)).astype(np.float32)


def machine(classes: int, kind: str, *, fitted: bool, seed: int = 0, **more: Any) -> dict[str, Any]:
    """Attributes of a machine of random vectors, with integers for labels."""
    rng = np.random.default_rng(seed + classes)
    per = [int(count) for count in rng.integers(1, 5, classes)]
    pairs, vectors = classes * (classes - 1) // 2, sum(per)

    def numbers(count: int, low: float = -1.5, high: float = 1.5) -> list[float]:
        return [float(v) for v in rng.uniform(low, high, count)]

    given: dict[str, Any] = {
        "kernel_type": kind,
        "kernel_params": [0.3, 0.4, 2.0],
        "support_vectors": numbers(vectors * WIDTH),
    }
    given |= {"vectors_per_class": per, "coefficients": numbers((classes - 1) * vectors), "rho": numbers(pairs)}
    fit = {"prob_a": numbers(pairs, -2, -0.5), "prob_b": numbers(pairs, -0.5, 0.5)} if fitted else {}
    return given | fit | {"classlabels_ints": [7 * i + 3 for i in range(classes)]} | more


@pytest.mark.parametrize(
    ("classes", "kind", "fitted", "post"),
    [
        (2, "RBF", True, "NONE"),
        (2, "POLY", False, "LOGISTIC"),
        (2, "LINEAR", False, "NONE"),
        (2, "RBF", False, "SOFTMAX"),
        (2, "SIGMOID", False, "SOFTMAX_ZERO"),
        (3, "LINEAR", True, "SOFTMAX"),
        (3, "SIGMOID", True, "NONE"),
        (4, "POLY", False, "SOFTMAX_ZERO"),
        (6, "RBF", True, "LOGISTIC"),
        (6, "RBF", False, "NONE"),
    ],
)
def test_as_onnxruntime(classes: int, kind: str, fitted: bool, post: str) -> None:
    given = machine(classes, kind, fitted=fitted, post_transform=post)
    assert_as_onnxruntime("SVMClassifier", [X], attributes=given, domain=ML, opset=1, outputs=2, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3, 5, 11, MOST_CLASSES])
@pytest.mark.parametrize("kind", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_many_machines(classes: int, kind: str) -> None:
    for seed in range(5):
        given = machine(classes, kind, fitted=True, seed=seed * 100)
        assert_as_onnxruntime("SVMClassifier", [X], attributes=given, domain=ML, opset=1, outputs=2, rtol=1e-4)


def test_probabilities_whose_coupling_takes_many_sweeps() -> None:
    """Pairs that contradict each other (a over b over c over a) take longest to be stationary."""
    given = machine(5, "LINEAR", fitted=True, prob_a=[-9.0] * 10, prob_b=[0.0] * 10)
    assert_as_onnxruntime("SVMClassifier", [4 * X], attributes=given, domain=ML, opset=1, outputs=2, rtol=1e-3)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_other_numbers(dtype: Any) -> None:
    given = machine(3, "RBF", fitted=True)
    assert_as_onnxruntime(
        "SVMClassifier", [(3 * X).astype(dtype)], attributes=given, domain=ML, opset=1, outputs=2, rtol=1e-4
    )


def test_without_support_vectors() -> None:
    given: dict[str, Any] = {
        "coefficients": [0.1 * i - 0.7 for i in range(3 * WIDTH)],
        "rho": [0.3],
        "classlabels_ints": [4, 2, 9],
    }
    given |= {"kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 0.0], "post_transform": "SOFTMAX"}
    assert_as_onnxruntime("SVMClassifier", [X], attributes=given, domain=ML, opset=1, outputs=2)


def test_labels_that_are_strings_are_looked_up_on_the_host() -> None:
    given = machine(3, "RBF", fitted=True, classlabels_strings=["a", "b", "c"])
    del given["classlabels_ints"]
    model = one_node("SVMClassifier", [X], given, domain=ML, opset=1, outputs=2)
    program = fuseline.compile(model, threads=1)
    assert [(host.op_type, host.reason) for host in program.record.host_ops] == [
        ("Gather", "host-value: labels are strings")
    ]
    labels, scores = program.run(feeds_of([X])).values()
    wanted = by_onnxruntime(model, feeds_of([X]))
    assert list(labels) == list(wanted[0])
    np.testing.assert_allclose(scores, wanted[1], rtol=1e-4)


def test_more_classes_than_a_body_holds() -> None:
    model = one_node("SVMClassifier", [X], machine(MOST_CLASSES + 1, "RBF", fitted=True), domain=ML, opset=1, outputs=2)
    program = fuseline.compile(model, threads=1)
    assert [host.reason for host in program.record.host_ops] == [
        f"many-classes: probabilities of {MOST_CLASSES + 1} classes"
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rho": [0.1]}, "1 offsets for 3 pairs"),
        ({"coefficients": [0.5]}, "1 coefficients"),
        ({"prob_b": [0.5]}, "1 of prob_b"),
        ({"classlabels_ints": [1, 2]}, "2 labels for 3 classes"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    model = one_node("SVMClassifier", [X], machine(3, "RBF", fitted=True) | change, domain=ML, opset=1, outputs=2)
    with pytest.raises(FuselineError, match=rf"E0105 \[node\].*{message}"):
        fuseline.compile(model, threads=1)


def test_a_score_that_onnxruntime_leaves_unwritten_is_refused() -> None:
    model = one_node(
        "SVMClassifier", [X], machine(2, "RBF", fitted=False, post_transform="PROBIT"), domain=ML, opset=1, outputs=2
    )
    with pytest.raises(FuselineError, match=r"E0106 \[node\].*PROBIT"):
        fuseline.compile(model, threads=1)
