"""Operators of ai.onnx.ml one by one, and what their attributes must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from fuseline.frontends.onnx.ops import ml_features, ml_labels, ml_linear, ml_pairs, ml_scores, trees
from tests.one_node import Value
from tests.unit.frontends.onnx.ops.lowerings import F32, RNG, agree, error, ints, normal, operators_of, refusal

ML = "ai.onnx.ml"
X = normal(6, 3)


def _agree(op_type: str, inputs: Sequence[Value], attributes: Mapping[str, Any], opset: int = 1, **more: Any) -> None:
    agree(op_type, inputs, attributes, domain=ML, opset=opset, rtol=1e-4, **more)


def _refusal(op_type: str, inputs: Sequence[Value], attributes: Mapping[str, Any], opset: int = 1, **more: Any) -> str:
    return refusal(op_type, inputs, attributes, domain=ML, opset=opset, **more)


def _error(words: str, op_type: str, inputs: Sequence[Value], attributes: Mapping[str, Any], **more: Any) -> None:
    error("E0105", words, op_type, inputs, attributes, **{"domain": ML, "opset": 1, **more})


def test_what_is_lowered_here() -> None:
    features = "ArrayFeatureExtractor Binarizer FeatureVectorizer Imputer Normalizer OneHotEncoder Scaler"
    assert operators_of(ml_features) == set(features.split())
    assert operators_of(ml_labels) == {"LabelEncoder"}
    assert operators_of(ml_linear) == {"LinearClassifier", "LinearRegressor", "SVMRegressor"}
    assert operators_of(ml_pairs) == {"SVMClassifier"}
    assert operators_of(trees) >= {"TreeEnsembleClassifier", "TreeEnsembleRegressor"}
    assert not operators_of(ml_scores)


# -- features ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_features_scaled(dtype: str) -> None:
    x = ints(-9, 9, 6, 3, dtype=dtype)
    for offset, scale in (([0.5], [2.0]), ([1.0, -2.0, 0.5], [2.0, 3.0, -1.0])):
        _agree("Scaler", [x], {"offset": offset, "scale": scale})


@pytest.mark.parametrize(
    ("offsets", "scales", "free"),
    [(2, 1, None), (1, 2, None), (2, 3, None), (3, 2, None), (2, 3, (0, 1)), (2, 4, (0, 1)), (2, 2, None)],
)
def test_offsets_and_scales_that_do_not_fit(offsets: int, scales: int, free: tuple[int, ...] | None) -> None:
    given = {"offset": normal(offsets).tolist(), "scale": normal(scales).tolist()}
    features = 3 if free is None else r"s\d"
    _error(f"{offsets} offsets and {scales} scales for {features} features", "Scaler", [X], given, free=free or ())


@pytest.mark.parametrize("threshold", [0.0, 0.4])
def test_features_compared(threshold: float) -> None:
    _agree("Binarizer", [X], {"threshold": threshold})
    assert _refusal("Binarizer", [ints(0, 3, 4)], {}) == "unsupported-dtype: int64"


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_rows_normalised(norm: str) -> None:
    x = np.abs(X)
    x[2] = 0
    _agree("Normalizer", [x], {"norm": norm})
    _agree("Normalizer", [x], {"norm": norm}, free=(0,))
    assert _refusal("Normalizer", [normal(2, 3, 4)], {"norm": norm}) == f"unsupported-mode: norm {norm} of rank 3"


def test_features_filled_in() -> None:
    x = normal(4, 3)
    x[0, 1], x[2, 2] = np.nan, 7
    for values in ([1.5], [1.5, 2.5, 3.5]):
        _agree("Imputer", [x], {"imputed_value_floats": values, "replaced_value_float": float("nan")})
        _agree(
            "Imputer",
            [x],
            {"imputed_value_floats": values, "replaced_value_float": 7.0},
            wanted=[np.where(x == 7, values, x).astype(F32)],
        )
    whole = ints(0, 3, 4, 3)
    _agree("Imputer", [whole], {"imputed_value_int64s": [9], "replaced_value_int64": 2})
    assert _refusal("Imputer", [x], {"replaced_value_float": 1.0}).startswith("unsupported-dtype: 0 values")


def test_features_picked_and_put_side_by_side() -> None:
    _agree("ArrayFeatureExtractor", [X, np.array([[2, 0]])], {})
    _agree("ArrayFeatureExtractor", [normal(5), np.array([[4, 1, 1]])], {})
    _agree("ArrayFeatureExtractor", [normal(1, 5), np.array([4, 1, 1])], {}, free=(1,))  # classes of a batch
    parts, widths = [X, normal(6, 2)], {"inputdimensions": [2, 4]}
    wanted = np.concatenate([X[:, :2], parts[1], np.zeros((6, 2), F32)], 1)
    _agree("FeatureVectorizer", parts, widths, wanted=[wanted])
    for wrong in ([2], [2, -1], []):
        _error("inputdimensions", "FeatureVectorizer", parts, {"inputdimensions": wrong} if wrong else {})


def test_categories() -> None:
    x = ints(0, 5, 2, 3)
    _agree("OneHotEncoder", [x], {"cats_int64s": [4, 0, 2], "zeros": 1})
    words = "unsupported-mode: categories that are strings, or that must be met"
    assert _refusal("OneHotEncoder", [x], {"cats_int64s": [1], "zeros": 0}) == words


# -- labels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 5, 8, 9])
@pytest.mark.parametrize("opset", [2, 4])
def test_keys_are_found(count: int, opset: int) -> None:
    keys = RNG.permutation(40)[:count].tolist()
    x, values = RNG.choice([*keys, -1, 99], (4, 5)).astype(np.int64), RNG.permutation(100)[:count].tolist()
    _agree("LabelEncoder", [x], {"keys_int64s": keys, "values_int64s": values, "default_int64": -5}, opset)
    floats = {"keys_int64s": keys, "values_floats": [v / 2 for v in values], "default_float": 0.25}
    _agree("LabelEncoder", [x], floats, opset)


def test_keys_that_do_not_fit() -> None:
    one = {"keys_int64s": [1, 2], "values_int64s": [1]}
    _error("2 keys for 1 values", "LabelEncoder", [ints(0, 3, 4)], one, opset=2)
    _error(
        "keys are int64, what is looked up is float32",
        "LabelEncoder",
        [normal(3)],
        {**one, "keys_int64s": [1]},
        opset=2,
    )
    texts = {"keys_strings": ["a"], "values_int64s": [1]}
    assert _refusal("LabelEncoder", [ints(0, 3, 4)], texts, 2) == "host-value: keys are strings"


# -- scores ------------------------------------------------------------------------------------------------------------

POST = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]


@pytest.mark.parametrize("post", POST)
@pytest.mark.parametrize("targets", [1, 3])
def test_linear_scores(post: str, targets: int) -> None:
    attributes = {"coefficients": normal(3 * targets).tolist(), "intercepts": normal(targets).tolist()}
    _agree("LinearRegressor", [X], {**attributes, "targets": targets, "post_transform": post})
    if targets == 3:
        more = {"classlabels_ints": [4, 2, 9], "post_transform": post, "multi_class": 1}
        _agree("LinearClassifier", [X], {**attributes, **more}, outputs=2)


def test_linear_scores_of_two_classes() -> None:
    attributes = {"coefficients": normal(3).tolist(), "intercepts": [0.1], "classlabels_ints": [4, 2]}
    for post in ("NONE", "LOGISTIC"):
        _agree("LinearClassifier", [X], {**attributes, "post_transform": post}, outputs=2)
    probit = {**attributes, "post_transform": "PROBIT"}
    error("E0106", "of which PROBIT makes no second", "LinearClassifier", [X], probit, domain=ML, opset=1, outputs=2)


def test_a_quantile() -> None:
    """Winitzki's inverse of erf is good to three digits. Its last step is the root of a difference of numbers near 4
    that vanishes at a half: an error of 1e-6 of the difference y^2 is one of 1e-6 / (2 y) in the answer y, and at most
    the root of it at a half itself."""
    attributes = {"coefficients": [1.0], "post_transform": "PROBIT"}
    far = np.concatenate([RNG.uniform(0.05, 0.4, (6, 1)), RNG.uniform(0.6, 0.95, (6, 1))]).astype(F32)
    _agree("LinearRegressor", [far], attributes)
    near = RNG.uniform(0.4, 0.6, (6, 1)).astype(F32)
    agree("LinearRegressor", [near], attributes, domain=ML, opset=1, rtol=1e-4, atol=2e-3)


@pytest.mark.parametrize(
    ("op_type", "attributes", "words"),
    [
        ("LinearClassifier", {"coefficients": [1.0] * 3, "classlabels_ints": [1, 2, 3]}, "one score for 3 classes"),
        ("LinearClassifier", {"coefficients": [1.0] * 9, "classlabels_ints": [1, 2]}, "3 scores for 2 classes"),
    ],
)
def test_scores_that_do_not_fit_the_classes(op_type: str, attributes: Mapping[str, Any], words: str) -> None:
    assert words in _refusal(op_type, [X], attributes, outputs=2 if "Classifier" in op_type else 1)
    assert "unsupported-rank" in _refusal(
        op_type, [normal(2, 3, 4)], attributes, outputs=2 if "Classifier" in op_type else 1
    )


@pytest.mark.parametrize(
    ("op_type", "attributes", "words"),
    [
        ("LinearRegressor", {"coefficients": [1.0, 2.0]}, "2 coefficients are no 1 rows of 3"),
        ("LinearRegressor", {"coefficients": [1.0] * 3, "intercepts": [1.0, 2.0]}, "2 intercepts for 1 outputs"),
        ("LinearRegressor", {"coefficients": [1.0] * 3, "targets": -1}, "3 coefficients are no -1 rows of 3"),
        ("LinearClassifier", {"coefficients": [1.0] * 4, "classlabels_ints": [1, 2]}, "4 coefficients are no 1 rows"),
        ("LinearClassifier", {"coefficients": [1.0] * 6, "intercepts": [1.0] * 3}, "3 intercepts for 2 outputs"),
    ],
)
def test_coefficients_that_do_not_fit(op_type: str, attributes: Mapping[str, Any], words: str) -> None:
    _error(words, op_type, [X], attributes, outputs=2 if "Classifier" in op_type else 1)


def test_coefficients_that_fit_no_number_of_features() -> None:
    for given in ({"coefficients": [1.0] * 5, "targets": 2}, {"coefficients": [1.0] * 3, "intercepts": [1.0, 2.0]}):
        _error("coefficients|intercepts", "LinearRegressor", [X], given, free=(0, 1))
    given = {"coefficients": [1.0] * 5, "intercepts": [0.5, 1.0], "classlabels_ints": [1, 2]}
    _error(r"5 coefficients are no 2 rows of s\d", "LinearClassifier", [X], given, outputs=2, free=(0, 1))


KERNELS = ["LINEAR", "RBF", "POLY", "SIGMOID"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_sums_of_kernels(kernel: str, one_class: int) -> None:
    attributes = {
        "kernel_type": kernel, "kernel_params": [0.3, 0.1, 2.0], "n_supports": 4, "one_class": one_class,
        "support_vectors": normal(12).tolist(), "coefficients": normal(4).tolist(), "rho": [0.2],
    }  # fmt: skip
    _agree("SVMRegressor", [X], attributes)
    without = {**attributes, "support_vectors": [1.0, 2.0]}
    _error("2 support_vectors are no 4 rows of 3", "SVMRegressor", [X], without)
    for given in ([0.3], [0.3, 0.1], [0.3, 0.1, 2.0, 1.0]):
        odd = {**attributes, "kernel_params": given}
        _error(f"{len(given)} kernel_params, not gamma, coef0 and degree", "SVMRegressor", [X], odd)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("vectors", [[2, 3], [1, 2, 2]])
def test_votes_of_pairs(kernel: str, vectors: list[int]) -> None:
    classes, total = len(vectors), sum(vectors)
    pairs = classes * (classes - 1) // 2
    attributes: dict[str, Any] = {
        "kernel_type": kernel, "kernel_params": [0.3, 0.1, 2.0], "vectors_per_class": vectors,
        "support_vectors": normal(3 * total).tolist(), "coefficients": normal(total * (classes - 1)).tolist(),
        "rho": normal(pairs).tolist(), "classlabels_ints": [5, 3, 8][:classes],
    }  # fmt: skip
    _agree("SVMClassifier", [X], attributes, outputs=2)
    fitted = {**attributes, "prob_a": [-1.0] * pairs, "prob_b": [0.1] * pairs}
    _agree("SVMClassifier", [X], fitted, outputs=2)
    for wrong, words in (
        ({"rho": [0.1] * (pairs + 1)}, f"and {pairs + 1} offsets for {pairs} pairs"),
        ({"classlabels_ints": [1]}, f"1 labels for {classes} classes"),
        ({"prob_a": [1.0] * pairs, "prob_b": [0.1] * (pairs + 1)}, f"{pairs} of prob_a and {pairs + 1} of prob_b"),
        ({"vectors_per_class": [total + 1, -1, *[0] * (classes - 2)]}, "fewer than none"),
    ):
        _error(words, "SVMClassifier", [X], {**attributes, **wrong}, outputs=2)
    bare = {"coefficients": [1.0] * 3, "classlabels_ints": [1]}
    _error("it needs labels and an offset", "SVMClassifier", [X], bare, outputs=2)
