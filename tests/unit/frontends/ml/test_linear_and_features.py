"""Linear models, support vector regression and features of ai.onnx.ml natively, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.draws import RNG, generator
from tests.native import assert_as_onnxruntime

ML = "ai.onnx.ml"
X = generator(__name__).standard_normal((7, 5)).astype(np.float32)


def numbers(*shape: int) -> list[float]:
    return [float(v) for v in RNG.standard_normal(shape).reshape(-1)]


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regressor(targets: int, post: str):
    attributes: dict[str, Any] = {
        "coefficients": numbers(targets, 5),
        "intercepts": numbers(targets),
        "targets": targets,
        "post_transform": post,
    }
    assert_as_onnxruntime("LinearRegressor", [X], attributes=attributes, domain=ML, opset=1)


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize(("scores", "labels"), [(3, [5, 2, 9]), (2, [4, 7]), (1, [4, 7])])
def test_linear_classifier(scores: int, labels: list[int], post: str):
    attributes: dict[str, Any] = {
        "coefficients": numbers(scores, 5),
        "intercepts": numbers(scores),
        "classlabels_ints": labels,
    }
    attributes["post_transform"] = post
    if scores == 1 and post == "SOFTMAX":
        pytest.skip("a share of one score")
    assert_as_onnxruntime("LinearClassifier", [X], attributes=attributes, domain=ML, opset=1, outputs=2)


@pytest.mark.parametrize("one_class", [0, 1])
@pytest.mark.parametrize(
    ("kind", "parameters"),
    [("LINEAR", [0, 0, 0]), ("RBF", [0.3, 0, 0]), ("POLY", [0.2, 0.5, 3]), ("SIGMOID", [0.2, 0.1, 0])],
)
def test_support_vector_regressor(kind: str, parameters: list[float], one_class: int):
    attributes: dict[str, Any] = {
        "kernel_type": kind,
        "support_vectors": numbers(9, 5),
        "n_supports": 9,
        "coefficients": numbers(9),
        "rho": [0.2],
    }
    attributes["kernel_params"] = [float(p) for p in parameters]
    assert_as_onnxruntime("SVMRegressor", [X], attributes=attributes | {"one_class": one_class}, domain=ML, opset=1)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float64])
@pytest.mark.parametrize("width", [1, 5])
def test_scaler(width: int, dtype: Any):
    attributes = {"offset": numbers(width), "scale": numbers(width)}
    assert_as_onnxruntime("Scaler", [(X * 4).astype(dtype)], attributes=attributes, domain=ML, opset=1)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm: str):
    x = X.copy()
    x[2] = 0
    assert_as_onnxruntime("Normalizer", [x], attributes={"norm": norm}, domain=ML, opset=1)


def test_binarizer():
    x = X.copy()
    x[0, :2] = 0.25, -np.inf
    assert_as_onnxruntime("Binarizer", [x], attributes={"threshold": 0.25}, domain=ML, opset=1)


@pytest.mark.parametrize("missing", [np.nan, -7.0])
@pytest.mark.parametrize("width", [1, 5])
def test_imputer(width: int, missing: float):
    x = X.copy()
    x[RNG.random(x.shape) < 0.3] = missing
    attributes = {"imputed_value_floats": numbers(width), "replaced_value_float": missing}
    assert_as_onnxruntime("Imputer", [x], attributes=attributes, domain=ML, opset=1)


@pytest.mark.parametrize("constant", [(), (1,)])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_array_feature_extractor(dtype: Any, constant: tuple[int, ...]):
    inputs = [(X * 9).astype(dtype), np.array([3, 0, 3])]
    assert_as_onnxruntime("ArrayFeatureExtractor", inputs, domain=ML, opset=1, constants=constant)


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_one_hot_encoder(dtype: Any):
    x = RNG.integers(0, 6, (3, 4)).astype(dtype)
    assert_as_onnxruntime("OneHotEncoder", [x], attributes={"cats_int64s": [4, 1, 2]}, domain=ML, opset=1)
