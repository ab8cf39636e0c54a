"""Features, linear models and support vector machines of ai.onnx.ml, computed in float32 whatever they are fed.

FeatureVectorizer, Scaler, Normalizer   integers become floats
LabelEncoder                            its first version; keys that are not numbers
LinearClassifier, LinearRegressor       every post transform, one score for two classes, no intercepts
SVMClassifier, SVMRegressor             probabilities of more than two classes, every post transform
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.corrections import Node
from fuseline.frontends.onnx.reference.scores import logistic, named, transformed, two_classes

F32 = np.float32
NAN = float("nan")
"""The one that keys are compared with, by identity."""

NAN_IS_A_KEY_SINCE = 4
"""Operator set of ai.onnx.ml; before it onnxruntime finds no NaN."""


class _Ml(Node):
    op_domain = "ai.onnx.ml"


class FeatureVectorizer(_Ml):
    """The columns of all inputs side by side, each input cut or filled with zeros to its declared width."""

    def _run(self, *inputs: Any, inputdimensions: Any = None, **_: Any) -> tuple[Any, ...]:
        parts: list[Any] = []
        for x, width in zip(inputs, inputdimensions, strict=True):
            flat = x.reshape(x.shape[0] if x.ndim > 1 else 1, -1).astype(F32)[:, :width]
            parts.append(np.pad(flat, [(0, 0), (0, width - flat.shape[1])]))
        return (np.concatenate(parts, 1),)


class Scaler(_Ml):
    """(x - offset) * scale, column by column."""

    def _run(self, x: Any, offset: Any = None, scale: Any = None, **_: Any) -> tuple[Any, ...]:
        low = np.zeros(1, F32) if offset is None else np.asarray(offset, F32)
        return ((x.astype(F32) - low) * (np.ones(1, F32) if scale is None else np.asarray(scale, F32)),)


class Normalizer(_Ml):
    """Each row by its norm; rows of zeros stay."""

    def _run(self, x: Any, norm: Any = None, **_: Any) -> tuple[Any, ...]:
        wide = x.astype(F32)
        size = {
            "MAX": lambda: wide.max(-1, keepdims=True),
            "L1": lambda: np.abs(wide).sum(-1, keepdims=True),
            "L2": lambda: np.sqrt((wide * wide).sum(-1, keepdims=True)),
        }[norm or "MAX"]()
        return (np.where(size == 0, wide, wide / np.where(size == 0, 1, size)),)


class LabelEncoder(_Ml):
    """Values by their keys; of equal keys the first."""

    def _run(self, x: Any, **given: Any) -> tuple[Any, ...]:
        if given.get("classes_strings") is not None:
            return (_first_version(x, given),)
        keys, values = (
            next(given[name] for name in names if given.get(name) is not None)
            for names in (_kinds("keys"), _kinds("values"))
        )
        dtype = np.asarray(values).dtype if given.get("values_tensor") is not None else _dtype_of(given)
        default = _default(given, dtype)
        pairs = list(zip(map(_key, _items(keys)), _items(values), strict=True))
        if self.version < NAN_IS_A_KEY_SINCE:
            pairs = [pair for pair in pairs if pair[0] is not NAN]
        return (_looked_up(x, dict(reversed(pairs)), default, dtype),)


def _kinds(side: str) -> list[str]:
    return [f"{side}_{kind}" for kind in ("tensor", "strings", "int64s", "floats")]


def _items(given: Any) -> list[Any]:
    items: list[Any] = np.asarray(given).reshape(-1).tolist() if isinstance(given, np.ndarray) else list(given)
    return [item.decode() if isinstance(item, bytes) else item for item in items]


def _key(item: Any) -> Any:
    """Every not-a-number is the same key."""
    return NAN if isinstance(item, float) and item != item else item


def _dtype_of(given: dict[str, Any]) -> Any:
    return (
        np.dtype(object)
        if given.get("values_strings") is not None
        else np.dtype(np.int64 if given.get("values_int64s") is not None else F32)
    )


def _default(given: dict[str, Any], dtype: Any) -> Any:
    tensor = given.get("default_tensor")
    if given.get("values_tensor") is not None:
        return (
            "_Unused"
            if tensor is None and dtype.kind in "OUST"
            else (-1 if dtype.kind == "i" else -0.0)
            if tensor is None
            else _items(tensor)[0]
        )
    name, otherwise = {"O": ("default_string", "_Unused"), "i": ("default_int64", -1)}.get(
        dtype.kind, ("default_float", -0.0)
    )
    found = given.get(name)
    return otherwise if found is None else _items([found])[0]


def _first_version(x: Any, given: dict[str, Any]) -> Any:
    classes = _items(given["classes_strings"])
    if x.dtype.kind in "iu":
        return _looked_up(
            x,
            dict(enumerate(classes)),
            _default({**given, "values_strings": classes}, np.dtype(object)),
            np.dtype(object),
        )
    return _looked_up(
        x,
        {name: i for i, name in enumerate(classes)},
        _default({**given, "values_int64s": []}, np.dtype(np.int64)),
        np.dtype(np.int64),
    )


def _looked_up(x: Any, table: dict[Any, Any], default: Any, dtype: Any) -> Any:
    out = np.empty(x.size, object)
    out[:] = [table.get(_key(item), default) for item in x.reshape(-1).tolist()]
    return out.reshape(x.shape) if dtype.kind in "OUST" else out.astype(dtype).reshape(x.shape)


class LinearRegressor(_Ml):
    """x W + b."""

    def _run(
        self,
        x: Any,
        coefficients: Any = None,
        intercepts: Any = None,
        targets: Any = None,
        post_transform: Any = None,
        **_: Any,
    ) -> tuple[Any, ...]:
        return (transformed(_linear(x, coefficients, intercepts, int(targets or 1)), post_transform).astype(F32),)


def _linear(x: Any, coefficients: Any, intercepts: Any, outputs: int) -> Any:
    rows = np.atleast_2d(x.astype(F32))
    scores = rows @ np.asarray(coefficients, F32).reshape(outputs, -1).T
    return scores if intercepts is None or not len(intercepts) else scores + np.asarray(intercepts, F32)


class LinearClassifier(_Ml):
    """The class with the largest score; of two classes with one score the second where it is positive."""

    def _run(
        self,
        x: Any,
        classlabels_ints: Any = None,
        classlabels_strings: Any = None,
        coefficients: Any = None,
        intercepts: Any = None,
        post_transform: Any = None,
        **_: Any,
    ) -> tuple[Any, ...]:
        scores = _linear(x, coefficients, intercepts, len(coefficients) // np.atleast_2d(x).shape[1])
        count = len(classlabels_strings or classlabels_ints or ())
        if scores.shape[1] > 1:
            return named(scores.argmax(1), classlabels_strings, classlabels_ints), transformed(
                scores, post_transform
            ).astype(F32)
        positive = (scores[:, 0] > 0).astype(np.int64)
        if count != 2:
            return positive, transformed(scores, post_transform).astype(F32)
        return named(positive, classlabels_strings, classlabels_ints), two_classes(
            scores, post_transform, probability=True
        ).astype(F32)


def _kernel(x: Any, vectors: Any, kind: str, parameters: Any) -> Any:
    """[rows, vectors]"""
    gamma, shift, degree = (
        (float(p) for p in parameters) if parameters is not None and len(parameters) else (0.0, 0.0, 0.0)
    )
    products = x @ vectors.T
    if kind == "RBF":
        return np.exp(-gamma * ((x[:, None] - vectors[None]) ** 2).sum(-1))
    if kind == "POLY":
        return (gamma * products + shift) ** degree
    return np.tanh(gamma * products + shift) if kind == "SIGMOID" else products


class SVMRegressor(_Ml):
    """The sum of the kernels of all support vectors; of one class only on which side it lies."""

    def _run(self, x: Any, coefficients: Any = None, rho: Any = None, **given: Any) -> tuple[Any, ...]:
        rows, weights = np.atleast_2d(x.astype(np.float64)), np.asarray(coefficients, np.float64)
        count = int(given.get("n_supports") or 0)
        if count:
            vectors = np.asarray(given["support_vectors"], np.float64).reshape(count, -1)
            scores = _kernel(rows, vectors, given.get("kernel_type") or "LINEAR", given.get("kernel_params")) @ weights
        else:
            scores = rows @ weights
        scores = scores[:, None] + float(rho[0])
        if given.get("one_class"):
            return (np.where(scores > 0, 1, -1).astype(F32),)
        return (transformed(scores, given.get("post_transform")).astype(F32),)


class SVMClassifier(_Ml):
    """Every pair of classes compared; votes, or probabilities fitted to all pairs."""

    def _run(
        self, x: Any, classlabels_ints: Any = None, classlabels_strings: Any = None, **given: Any
    ) -> tuple[Any, ...]:
        rows, rho = np.atleast_2d(x.astype(np.float64)), np.asarray(given["rho"], np.float64)
        classes, transform = max(len(classlabels_strings or classlabels_ints or ()), 1), given.get("post_transform")
        vectors = given.get("vectors_per_class")
        if vectors is None or not sum(vectors):
            scores = rows @ np.asarray(given["coefficients"], np.float64).reshape(classes, -1).T + rho[0]
            return named(scores.argmax(1), classlabels_strings, classlabels_ints), transformed(
                scores, transform
            ).astype(F32)
        scores = _pairs(rows, [int(n) for n in vectors], rho, given)
        best, fitted = _votes(scores, classes).argmax(1), given.get("prob_a")
        if fitted is not None and len(fitted):
            scores = np.stack([_probabilities(row, classes, fitted, given["prob_b"]) for row in scores])
            return named(best, classlabels_strings, classlabels_ints), transformed(scores, transform).astype(F32)
        if classes == 2:
            return named(best, classlabels_strings, classlabels_ints), two_classes(
                scores, transform, probability=(transform or "NONE") != "NONE"
            ).astype(F32)
        return named(best, classlabels_strings, classlabels_ints), transformed(scores, transform).astype(F32)


def _pairs(x: Any, vectors: list[int], rho: Any, given: dict[str, Any]) -> Any:
    """[rows, pairs]: positive for the first class of each pair."""
    total = sum(vectors)
    kernels = _kernel(
        x,
        np.asarray(given["support_vectors"], np.float64).reshape(total, -1),
        given.get("kernel_type") or "LINEAR",
        given.get("kernel_params"),
    )
    weights, ends = np.asarray(given["coefficients"], np.float64).reshape(-1, total), np.cumsum(vectors)
    parts = [slice(end - count, end) for end, count in zip(ends, vectors, strict=True)]
    found = [
        kernels[:, parts[i]] @ weights[j - 1, parts[i]] + kernels[:, parts[j]] @ weights[i, parts[j]]
        for i in range(len(vectors))
        for j in range(i + 1, len(vectors))
    ]
    return np.stack(found, 1) + rho


def _votes(scores: Any, classes: int) -> Any:
    votes, pair = np.zeros((len(scores), classes)), 0
    for i in range(classes):
        for j in range(i + 1, classes):
            votes[:, i] += scores[:, pair] > 0
            votes[:, j] += scores[:, pair] <= 0
            pair += 1
    return votes


def _probabilities(scores: Any, classes: int, prob_a: Any, prob_b: Any) -> Any:
    """The class probabilities that fit those of all pairs best (Wu, Lin and Weng, 2004, the second method)."""
    r, pair = np.zeros((classes, classes)), 0
    for i in range(classes):
        for j in range(i + 1, classes):
            r[i, j] = np.clip(logistic(np.asarray(-(scores[pair] * prob_a[pair] + prob_b[pair]))), 1e-7, 1 - 1e-7)
            r[j, i] = 1 - r[i, j]
            pair += 1
    return _fitted(np.where(np.eye(classes, dtype=bool), (r * r).sum(0), -r.T * r), classes)


def _fitted(q: Any, classes: int) -> Any:
    p = np.full(classes, 1 / classes)
    for _ in range(max(100, classes)):
        qp = q @ p
        total = p @ qp
        if np.abs(qp - total).max() < 0.005 / classes:
            break
        for t in range(classes):
            step = (total - qp[t]) / q[t, t]
            total = (total + step * (step * q[t, t] + 2 * qp[t])) / (1 + step) ** 2
            qp = (qp + step * q[t]) / (1 + step)
            p[t] += step
            p = p / (1 + step)
    return p


CLASSICAL: tuple[type[OpRun], ...] = (
    FeatureVectorizer,
    Scaler,
    Normalizer,
    LabelEncoder,
    LinearRegressor,
    LinearClassifier,
    SVMRegressor,
    SVMClassifier,
)
"""What to give `ReferenceEvaluator` as `new_ops`."""
