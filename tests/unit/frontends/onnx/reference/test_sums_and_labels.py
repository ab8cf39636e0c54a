"""Sums of halves, transforms, norms, words and labels by the reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.frontends.onnx.reference.evaluations import F16, F32, ML, RNG, agree, normal, run


@pytest.mark.parametrize("kind", ["Sum", "Mean", "Prod", "L1", "L2"])
def test_halves_are_rounded_once(kind: str) -> None:
    x = RNG.uniform(0.9, 1.1, (2, 3000 if kind != "Prod" else 30)).astype(F16)
    wide = x.astype(np.float64)
    wanted = {
        "Sum": wide.sum, "Mean": wide.mean, "Prod": wide.prod, "L1": np.abs(wide).sum, "L2": (wide**2).sum
    }[kind](1, keepdims=True)  # fmt: skip
    wanted = np.sqrt(wanted) if kind == "L2" else wanted
    (found,) = run(f"Reduce{kind}", [x, np.array([1])])
    assert found.dtype == F16
    np.testing.assert_allclose(found.astype(float), wanted, rtol=2e-3)
    (found,) = run(f"Reduce{kind}", [x.astype(F32), np.array([1])])
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_transforms() -> None:
    x = normal(2, 5, 1)
    wanted = np.fft.fft(x[..., 0], axis=1)
    agree("DFT", [x], {"axis": 1}, wanted=[np.stack([wanted.real, wanted.imag], -1).astype(F32)], opset=17)
    agree("DFT", [x, None, np.array(1)], wanted=[np.stack([wanted.real, wanted.imag], -1).astype(F32)], opset=20)
    agree("DFT", [normal(2, 0, 1)], {"axis": 1}, wanted=[np.zeros((2, 0, 2), F32)], opset=17)
    agree("DFT", [normal(2, 0, 1), None, np.array(1)], wanted=[np.zeros((2, 0, 2), F32)], opset=20)


@pytest.mark.parametrize("dtype", [F32, F16])
def test_norms_of_a_batch(dtype: Any) -> None:
    x = normal(3, 4, 5, dtype=dtype)
    parts = [
        normal(4, dtype=dtype),
        normal(4, dtype=dtype),
        normal(4, dtype=dtype),
        RNG.uniform(0.5, 2, 4).astype(dtype),
    ]
    scale, bias, mean, var = (part.astype(float)[:, None] for part in parts)
    wanted = (x.astype(float) - mean) / np.sqrt(var + 0.01) * scale + bias
    for opset in (9, 15):
        agree(
            "BatchNormalization",
            [x, *parts],
            {"epsilon": 0.01},
            wanted=[wanted.astype(dtype)],
            opset=opset,
            tolerance=5e-3,
        )
    own_mean, own_var = x.astype(float).mean((0, 2)), x.astype(float).var((0, 2))
    trained = (x.astype(float) - own_mean[:, None]) / np.sqrt(own_var[:, None] + 0.01) * scale + bias
    running = [parts[2].astype(float) * 0.7 + own_mean * 0.3, parts[3].astype(float) * 0.7 + own_var * 0.3]
    outputs = [array.astype(dtype) for array in (trained, *running)]
    attributes = {"epsilon": 0.01, "momentum": 0.7, "training_mode": 1}
    agree("BatchNormalization", [x, *parts], attributes, wanted=outputs, outputs=3, opset=15, tolerance=1e-2)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_norms_of_images(p: int) -> None:
    agree("GlobalLpPool", [normal(2, 3, 4, 5)], {"p": p})


@pytest.mark.parametrize("change", ["UPPER", "LOWER", "NONE"])
@pytest.mark.parametrize("sensitive", [0, 1])
def test_words(change: str, sensitive: int) -> None:
    words = np.array(["The", "the", "Größe", "End"], object)
    attributes = {"case_change_action": change, "is_case_sensitive": sensitive, "stopwords": ["the"]}
    kept = [word for word in words if (word if sensitive else word.lower()) != "the"]
    turned = [{"UPPER": str.upper, "LOWER": str.lower}.get(change, str)(word) for word in kept]
    agree("StringNormalizer", [words], attributes, wanted=[np.array(turned, object)])
    agree("StringNormalizer", [words[None]], attributes, wanted=[np.array([turned], object)])
    agree("StringNormalizer", [words[1:2]], attributes, wanted=[np.array([""], object)])


@pytest.mark.parametrize("opset", [2, 4])
def test_labels_of_keys(opset: int) -> None:
    x = np.array([1.5, np.nan, 7, -2], F32)
    attributes = {
        "keys_floats": [1.5, float("nan"), -2.0, 1.5],
        "values_strings": ["a", "n", "m", "z"],
        "default_string": "?",
    }
    wanted = np.array(["a", "n" if opset == 4 else "?", "?", "m"], object)
    agree("LabelEncoder", [x], attributes, wanted=[wanted], domain=ML, opset=opset)
    agree("LabelEncoder", [x], attributes, domain=ML, opset=opset)  # by onnxruntime
    texts = np.array(["b", "c", "a"], object)
    numbers = {"keys_strings": ["a", "b"], "values_int64s": [3, 4]}
    agree("LabelEncoder", [texts], numbers, wanted=[np.array([4, -1, 3])], domain=ML, opset=opset)
    floats = {"keys_strings": ["a", "b"], "values_floats": [3.5, 4.5], "default_float": 9.0}
    agree("LabelEncoder", [texts], floats, wanted=[np.array([4.5, 9, 3.5], F32)], domain=ML, opset=opset)


def test_labels_of_the_first_version() -> None:
    classes = {"classes_strings": ["x", "y"], "default_string": "?", "default_int64": -7}
    agree(
        "LabelEncoder", [np.array([1, 0, 5])], classes, wanted=[np.array(["y", "x", "?"], object)], domain=ML, opset=1
    )
    agree("LabelEncoder", [np.array(["y", "z"], object)], classes, wanted=[np.array([1, -7])], domain=ML, opset=1)
