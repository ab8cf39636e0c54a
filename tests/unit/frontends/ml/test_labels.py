"""LabelEncoder of ai.onnx.ml between numbers natively, and FeatureVectorizer, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG
from tests.native import assert_as_onnxruntime
from tests.one_node import by_onnxruntime, feeds_of, one_node

ML = "ai.onnx.ml"
FLOATS = np.array([[1, 2, 2.5, np.nan, -0.0], [0, np.inf, -np.inf, 9, -7.25]], np.float32)
WHOLE = np.array([1, 2, 3, -5, 2**40, 0, -(2**63), 2**63 - 1], np.int64)


def check(x: Any, opset: int, **attributes: Any) -> None:
    assert_as_onnxruntime("LabelEncoder", [x], attributes=attributes, domain=ML, opset=opset)


@pytest.mark.parametrize("opset", [2, 4])
def test_floats(opset: int) -> None:
    """Keys in any order, one of them twice, not a number, an infinity: before operator set 4 NaN is no key."""
    keys = [2.0, 1.0, float("nan"), float("-inf"), 1.0, 0.0, float("inf")]
    check(FLOATS, opset, keys_floats=keys, values_floats=[float(v) for v in RNG.standard_normal(7)], default_float=-3.5)
    check(FLOATS, opset, keys_floats=keys, values_int64s=[5, 2**50, 7, -1, 4, 3, 2])


@pytest.mark.parametrize("opset", [2, 4])
def test_integers(opset: int) -> None:
    check(WHOLE, opset, keys_int64s=[2**40, 1, -(2**63), 1], values_int64s=[7, 8, 9, 10], default_int64=2**60)
    check(WHOLE, opset, keys_int64s=[2**63 - 1, -5], values_floats=[0.5, 2.5])


@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 1000])
def test_tables_of_any_length(count: int) -> None:
    keys = RNG.choice(3 * count, count, replace=False) - count
    x = RNG.integers(-count - 2, 3 * count, (7, 11))
    check(x, 2, keys_int64s=keys.tolist(), values_int64s=RNG.integers(-99, 99, count).tolist())
    check(
        x.astype(np.float32),
        2,
        keys_floats=keys.astype(np.float32).tolist(),
        values_floats=RNG.standard_normal(count).tolist(),
    )


@pytest.mark.parametrize(
    ("keys", "values"), [("float64", "float64"), ("float64", "int64"), ("int64", "float64"), ("float32", "float32")]
)
@pytest.mark.parametrize("default", [None, 5])
def test_tensors(keys: str, values: str, default: int | None) -> None:
    held = [1, 7, 2, 7, -5]
    given = {"keys_tensor": numpy_helper.from_array(np.array(held, keys))}
    given["values_tensor"] = numpy_helper.from_array(np.array([3, 4, 5, 6, 7], values))
    if default is not None:
        given["default_tensor"] = numpy_helper.from_array(np.array([default], values))
    check(np.array([1, 2, 3, -5, 7, 0]).astype(keys), 4, **given)


def test_strings_run_on_the_host() -> None:
    model = one_node("LabelEncoder", [WHOLE], {"keys_int64s": [1, 2], "values_strings": ["a", "b"]}, domain=ML, opset=2)
    program = fuseline.compile(model, threads=1)
    assert [host.reason for host in program.record.host_ops] == ["host-value: values are strings"]
    assert program.run(feeds_of([WHOLE]))["o0"].tolist() == by_onnxruntime(model, feeds_of([WHOLE]))[0].tolist()


@pytest.mark.parametrize("change", [{"values_int64s": [1]}, {"keys_int64s": [], "keys_floats": [1.0, 2.0]}])
def test_tables_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    given = {
        name: value for name, value in ({"keys_int64s": [1, 2], "values_int64s": [1, 2]} | change).items() if value
    }
    with pytest.raises(FuselineError, match=r"E0105 \[node\]"):
        fuseline.compile(one_node("LabelEncoder", [WHOLE], given, domain=ML, opset=2), threads=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
@pytest.mark.parametrize("widths", [[3, 2], [2, 2], [5, 1]])
def test_features_side_by_side(widths: list[int], dtype: Any) -> None:
    parts: list[Any] = [(RNG.standard_normal((4, width)) * 5).astype(dtype) for width in (3, 2)]
    assert_as_onnxruntime("FeatureVectorizer", parts, attributes={"inputdimensions": widths}, domain=ML, opset=1)


def test_features_of_other_ranks() -> None:
    for shapes, widths in (([(3,), (1, 2)], [3, 2]), ([(4, 3, 2), (4, 2)], [6, 2])):
        parts: list[Any] = [RNG.standard_normal(shape).astype(np.float32) for shape in shapes]
        assert_as_onnxruntime("FeatureVectorizer", parts, attributes={"inputdimensions": widths}, domain=ML, opset=1)


@pytest.mark.parametrize(("widths", "rows"), [([3], 4), ([3, 2], 5)])
def test_features_that_do_not_fit_are_refused(widths: list[int], rows: int) -> None:
    parts = [np.ones((4, 3), np.float32), np.ones((rows, 2), np.float32)]
    with pytest.raises(FuselineError, match=r"E010[57] \[node\]"):
        fuseline.compile(
            one_node("FeatureVectorizer", parts, {"inputdimensions": widths}, domain=ML, opset=1), threads=1
        )
