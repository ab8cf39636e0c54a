"""What random graphs showed, each at its smallest: right against onnxruntime and the interpreter in float64, or refused as it should be."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser

import fuseline
from fuseline.errors import FuselineError
from tests.fuzz.case import Case, Choices, Feeds
from tests.fuzz.check import check
from tests.fuzz.tensors import random_array

SIZES = {"N": 5, "M": 3}

RIGHT = {
    "concat_of_nothing": "(float[4,5,0] x) => (float[?,?,?] y) { y = Concat <axis = 1> (x, x) }",
    "cumsum_over_one_element": "(float[2,1,5] x) => (float[?,?,?] y) <int64 axis = {1}> { y = CumSum (x, axis) }",
    "exclusive_cumsum_over_one_element": "(float[2,1,5] x) => (float[?,?,?] y) <int64 axis = {1}> { y = CumSum <exclusive = 1> (x, axis) }",
    "sizes_as_int16": "(float[N,M] x) => (int16[?] y) { s = Shape (x)  y = Cast <to = 5> (s) }",
    "sizes_as_int32": "(float[N,M] x) => (int32[?] y) { s = Shape (x)  y = Cast <to = 6> (s) }",
    "statistics_of_a_norm_of_doubles": "(double[N,2] x) => (double[?,?] y, float[?,?] m) <double[2] w = {1,2}> { y, m = LayerNormalization (x, w) }",
    "an_input_that_is_an_output": "(float[2,N,3] x) => (float[?,?,?] y, float[?,?,?] x) { y = Neg (x) }",
    "softplus_of_small_numbers": "(float[N,M] x) => (float[?,?] y) <float c = {12}> { z = Sub (x, c)  y = Softplus (z) }",
    "mish_of_small_numbers": "(float[N,M] x) => (float[?,?] y) <float c = {12}> { z = Sub (x, c)  y = Mish (z) }",
}

FLAT_HARDMAX = "(float[N,4,3] x) => (float[?,?,?] y) { y = Hardmax <axis = 1> (x) }"


def _case(text: str, opset: int = 18, seed: int = 1, **choices: str) -> Case:
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["": {opset}]> g {text}')
    rng = np.random.default_rng(seed)
    return Case(model, [_feeds(model, rng) for _ in range(2)], Choices(**choices))  # pyright: ignore[reportArgumentType]


def _feeds(model: onnx.ModelProto, rng: np.random.Generator) -> Feeds:
    feeds: Feeds = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = tuple(SIZES[dim.dim_param] if dim.dim_param else dim.dim_value for dim in tensor.shape.dim)
        feeds[value.name] = random_array(rng, onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type), shape)
    return feeds


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("numerics", ["default", "strict"])
def test_right(name: str, numerics: str):
    assert check(_case(RIGHT[name], numerics=numerics)) is None


@pytest.mark.parametrize("opset", [9, 11, 12])
def test_hardmax_was_over_all_axes_from_one_on(opset: int):
    assert check(_case(FLAT_HARDMAX, opset)) is None


@pytest.mark.parametrize("op", ["Softplus", "Mish"])
def test_small_results_are_relatively_exact(op: str):
    text = f"(float[40] x) => (float[?] y) {{ y = {op} (x) }}"
    x = np.linspace(-40, -1, 40).astype(np.float32)
    expected = np.log1p(np.exp(x.astype(np.float64)))
    expected = expected if op == "Softplus" else x * np.tanh(expected)
    np.testing.assert_allclose(fuseline.compile(_case(text).model, threads=1).run({"x": x})["y"], expected, rtol=1e-6)


def _refused(text: str, feeds: Feeds, **options: object) -> FuselineError:
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(_case(text).model, threads=1, **options).run(feeds)  # pyright: ignore[reportArgumentType]
    return caught.value


def test_a_size_of_0_at_run_time_would_copy_another_size():
    text = "(float[N,8] x, float[M] y) => (float[?,?] z) <int64[1] r = {-1}> { s = Shape (y)  t = Concat <axis = 0> (r, s)  z = Reshape (x, t) }"
    bounds = {"N": "0..9", "M": "0..9"}
    error = _refused(text, {"x": np.zeros((3, 8), np.float32), "y": np.zeros(0, np.float32)}, shapes=bounds)
    assert error.code == "E0203" and "at least 1" in error.message
    assert check(_case(text.replace("float[M]", "float[8]"))) is None


def test_squeeze_of_all_ones_needs_to_know_them():
    text = "(float[N,1,3] x) => (float[?,?] y) { y = Squeeze (x) }"
    error = _refused(text, {"x": np.zeros((1, 1, 3), np.float32)})
    assert error.code == "E0203" and error.hint is not None and "compile for these very sizes" in error.hint
    assert check(_case(text)) is None
    model = _case(text).model
    assert fuseline.compile(model, threads=1, shapes={"N": 1}).run({"x": np.ones((1, 1, 3), np.float32)})["y"].shape == (3,)
