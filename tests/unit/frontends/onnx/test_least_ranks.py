"""Operators that index an axis of an input: a scalar is refused by name, as onnxruntime refuses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.graphs.onnx_text import call, declared, element_of, onnx_model

SPECS: dict[str, tuple[str, dict[str, Any]]] = {
    "Imputer": ("ai.onnx.ml.", {"imputed_value_floats": [1.5, -2.0, 4.0], "replaced_value_float": 0.0}),
    "ArrayFeatureExtractor": ("ai.onnx.ml.", {}),
    "ScatterND": ("", {}),
    "GatherND": ("", {}),
}


def _model(op_type: str, arrays: Sequence[np.ndarray[Any, Any]]) -> onnx.ModelProto:
    domain, attributes = SPECS[op_type]
    feeds = {f"x{i}": array for i, array in enumerate(arrays)}
    node = call(f"{domain}{op_type}", *feeds, name="asked", **attributes)
    imports = {"": 17, "ai.onnx.ml": 3}
    return onnx_model(f"({declared(feeds)}) => ({element_of(arrays[0].dtype)}[] y) {{ {node} }}", imports=imports)


SCALAR, ROW = np.float32(2.0), np.array([3.0, 0.0, 5.0], np.float32)
PLACE, PLACES = np.array(1, np.int64), np.array([[2]], np.int64)


@pytest.mark.parametrize(
    ("op_type", "arrays"),
    [
        ("Imputer", [np.asarray(SCALAR)]),
        ("ArrayFeatureExtractor", [np.asarray(SCALAR), PLACES]),
        ("ScatterND", [ROW, PLACE, ROW[:1]]),
        ("ScatterND", [np.asarray(SCALAR), PLACES[0], ROW[:1]]),
        ("GatherND", [ROW, PLACE]),
        ("GatherND", [np.asarray(SCALAR), PLACES]),
    ],
)
def test_a_scalar_is_refused_by_name(op_type: str, arrays: list[np.ndarray[Any, Any]]) -> None:
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(_model(op_type, arrays))
    assert caught.value.code == "E0107" and "asked" in str(caught.value)


@pytest.mark.parametrize(
    ("op_type", "others"),
    [("Imputer", []), ("ArrayFeatureExtractor", [PLACE]), ("ScatterND", [PLACES, ROW[:1]]), ("GatherND", [PLACES])],
)
def test_a_row_is_what_onnxruntime_answers(op_type: str, others: list[np.ndarray[Any, Any]]) -> None:
    row = np.random.default_rng().standard_normal(3).astype(np.float32) * np.array([1, 0, 1], np.float32)
    model = _model(op_type, [row, *others])
    feeds = {f"x{i}": array for i, array in enumerate([row, *others])}
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    (found,) = fuseline.InferenceSession(model.SerializeToString()).run(None, feeds)
    np.testing.assert_array_equal(found, wanted)
