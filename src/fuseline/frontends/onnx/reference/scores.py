"""What classifiers and regressors of ai.onnx.ml make of their scores: transformations, a second class, labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TINY = 1e-7
"""What SOFTMAX_ZERO takes for zero."""


def logistic(x: Array) -> Array:
    """1 / (1 + exp(-x)), of the small side where it is exact."""
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


def softmax(x: Array) -> Array:
    """Exponentials by their sum, row by row."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _softmax_zero(x: Array) -> Array:
    top = x.max(-1, keepdims=True)
    powers = np.where(np.abs(x) > TINY, np.exp(x - top), x * np.exp(-top))
    total = powers.sum(-1, keepdims=True)
    return np.where(total == 0, 0.5, powers / np.where(total == 0, 1, total))


def _probit(x: Array) -> Array:
    """The quantile function of the normal distribution, as ai.onnx.ml approximates it."""
    y = 2 * x - 1
    log = np.log((1 - y) * (1 + y))
    half = 2 / (np.pi * 0.147) + 0.5 * log
    return np.asarray(1.41421356 * np.sign(y) * np.sqrt(np.sqrt(half * half - log / 0.147) - half))


_TRANSFORMS: Mapping[str, Callable[[Array], Array]] = {
    "NONE": lambda x: x,
    "LOGISTIC": logistic,
    "SOFTMAX": softmax,
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}


def transformed(scores: Array, transform: str | None) -> Array:
    """Scores [rows, classes] under `post_transform`; a lone score knows no class beside it: only PROBIT means anything
    to it."""
    name = transform or "NONE"
    return scores if scores.shape[-1] == 1 and name != "PROBIT" else _TRANSFORMS[name](scores)


def two_classes(score: Array, transform: str | None, *, probability: bool) -> Array:
    """Both scores [rows, 2] of a binary classifier that has one [rows, 1]: its complement to 1 where it is a
    `probability`, else its negative. Of the transformations only LOGISTIC is one of a single score: 1 - p(x) is p(-x);
    as in onnxruntime the others leave both as they are.
    """
    name = transform or "NONE"
    if name == "PROBIT":
        raise NotImplementedError("PROBIT makes no second score for two classes of one")
    if name == "LOGISTIC":
        return logistic(np.concatenate([-score, score], 1))
    return np.concatenate([1 - score if probability else -score, score], 1)


def named(places: Array, strings: Sequence[Any] | None, numbers: Sequence[int] | None) -> Array:
    """The labels at `places` of a classifier's list."""
    if strings is not None and len(strings):
        out = np.empty(len(places), object)
        out[:] = [_text(strings[int(place)]) for place in places]
        return out
    return np.asarray(numbers, np.int64)[places] if numbers is not None and len(numbers) else places.astype(np.int64)


def _text(item: Any) -> str:
    return item.decode() if isinstance(item, bytes) else str(item)
