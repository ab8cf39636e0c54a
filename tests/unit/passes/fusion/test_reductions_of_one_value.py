"""Several reductions of one value are made in one walk along it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.passes.fusion.horizontal import MOST_ROWS_DOWN
from tests.draws import RNG
from tests.graphs.onnx_text import element_of, onnx_model

PAIRS = {
    "mean and maximum": "a = ReduceMean<keepdims = 0>(x, axes)  b = ReduceMax<keepdims = 0>(x, axes)",
    "range": "a = ReduceMin<keepdims = 1>(x, axes)  b = ReduceMax<keepdims = 1>(x, axes)",
    "three": "a = ReduceSum(x, axes)  b = ReduceMax(x, axes)  c = ReduceMin(x, axes)",
    "with what follows": "m = ReduceMean(x, axes)  a = Neg(m)  s = ReduceMax(x, axes)  b = Abs(s)",
}


def _model(pair: str, dtype: Any, dims: list[int], axes: list[int]) -> Any:
    outputs = ", ".join(f"{element_of(dtype)}[] {name}" for name in "abc" if f"{name} =" in pair)
    text = f"({element_of(dtype)}[{', '.join(map(str, dims))}] x) => ({outputs}) {{ {pair} }}"
    return onnx_model(text, axes=np.array(axes))


def _count(model: Any) -> int:
    return fuseline.compile(model, target="null", threads=1).stats["dispatches"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("name", PAIRS)
def test_reductions_along_rows_and_down_few_are_one_dispatch(name: str, dtype: Any) -> None:
    """However large what they read is; values as one by one."""
    few = int(RNG.integers(MOST_ROWS_DOWN // 2, MOST_ROWS_DOWN + 1))
    for dims, axes in (
        ([int(RNG.integers(300, 900)), int(RNG.integers(100, 300))], [1]),
        ([few, int(RNG.integers(1000, 4000))], [0]),
        ([2, few, int(RNG.integers(600, 900))], [1]),
        ([300, 9, int(RNG.integers(20, 30))], [1, 2]),
    ):
        model = _model(PAIRS[name], dtype, dims, axes)
        assert _count(model) == 1
        x = RNG.standard_normal(dims).astype(dtype)
        found = fuseline.compile(model, threads=int(RNG.integers(1, 3))).run({"x": x})
        wanted = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x})
        limit = 4e-2 if dtype is np.float16 else 1e-4
        for key, value in found.items():
            np.testing.assert_allclose(value, wanted[key], rtol=limit, atol=limit)


def test_reductions_down_many_rows_or_of_different_loops_stay_apart() -> None:
    pair = PAIRS["range"]
    assert _count(_model(pair, np.float32, [4 * MOST_ROWS_DOWN, 300], [0])) == 2
    crossed = pair.replace("ReduceMax<keepdims = 1>(x, axes)", "ReduceMax<keepdims = 1>(x, others)")
    model = _model(crossed, np.float32, [300, 200], [1])
    model.graph.initializer.append(onnx_model("(float x) => (y) { y = Neg(x) }", o=np.array([0])).graph.initializer[0])
    model.graph.initializer[-1].name = "others"
    assert _count(model) == 2


def test_the_place_of_a_maximum_has_a_kernel_of_its_own() -> None:
    pair = "a = ReduceMax<keepdims = 0>(x, axes)  b = ArgMax<axis = 1, keepdims = 0>(x)"
    model = _model(pair, np.float32, [400, 300], [1])
    model.graph.output[1].type.tensor_type.elem_type = 7
    families = {one.family for one in fuseline.compile(model, threads=1).record.dispatches}
    assert "selection" in families and "loop-nest" not in families
