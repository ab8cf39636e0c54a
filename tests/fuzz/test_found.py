"""What random graphs showed, each at its smallest: right against onnxruntime and the interpreter in float64, or refused
as it should be."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import fuseline
from fuseline.errors import FuselineError
from tests.fuzz.case import Case, Choices, Feeds
from tests.fuzz.check import check
from tests.fuzz.tensors import random_array

SIZES = {"N": 5, "M": 3, "K": 1}

RIGHT = {
    "the_first_of_equal_elements_in_blocks": (
        "(float[N,8,5,5] x) => (int64[?,?,?] y) { d = DepthToSpace <blocksize = 2> (x)  f = Floor (d)  "
        "y = ArgMin <axis = 2, keepdims = 0> (f) }"
    ),
    "the_last_of_equal_elements_in_a_transposed_row": (
        "(float[N,3,4,2] x) => (int64[?,?] y) <int64[3] s = {0,0,-1}> { t = Transpose <perm = [0,2,3,1]> (x)  "
        "r = Reshape (t, s)  f = Floor (r)  y = ArgMax <axis = 2, keepdims = 0, select_last_index = 1> (f) }"
    ),
    "the_first_of_equal_elements_in_a_shuffled_row": (
        "(float[2,3,4,M] x) => (int64[?] y) <int64[2] s = {2,-1}> { t = Transpose <perm = [0,3,1,2]> (x)  "
        "r = Reshape (t, s)  f = Round (r)  y = ArgMax <axis = 1, keepdims = 0> (f) }"
    ),
    "concat_of_nothing": "(float[4,5,0] x) => (float[?,?,?] y) { y = Concat <axis = 1> (x, x) }",
    "cumsum_over_one_element": "(float[2,1,5] x) => (float[?,?,?] y) <int64 axis = {1}> { y = CumSum (x, axis) }",
    "exclusive_cumsum_over_one_element": (
        "(float[2,1,5] x) => (float[?,?,?] y) <int64 axis = {1}> { y = CumSum <exclusive = 1> (x, axis) }"
    ),
    "sizes_as_int16": "(float[N,M] x) => (int16[?] y) { s = Shape (x)  y = Cast <to = 5> (s) }",
    "sizes_as_int32": "(float[N,M] x) => (int32[?] y) { s = Shape (x)  y = Cast <to = 6> (s) }",
    "statistics_of_a_norm_of_doubles": (
        "(double[N,2] x) => (double[?,?] y, float[?,?] m) <double[2] w = {1,2}> { y, m = LayerNormalization (x, w) }"
    ),
    "an_input_that_is_an_output": "(float[2,N,3] x) => (float[?,?,?] y, float[?,?,?] x) { y = Neg (x) }",
    "softplus_of_small_numbers": (
        "(float[N,M] x) => (float[?,?] y) <float c = {12}> { z = Sub (x, c)  y = Softplus (z) }"
    ),
    "a_size_times_a_number_leaves_64_bits": (
        "(float[3,N,N] x) => (int64 y) <int64 c = {-7425366619139589192}> { s = Size (x)  y = Mul (s, c) }"
    ),
    "a_scalar_beside_what_the_host_holds": "(float x) => (float y) <float c = {0.7}> { a = Neg (x)  o = Optional (a)  "
    "z = OptionalGetElement (o)  "
    "y = Mod <fmod = 1> (z, c) }",
    "a_product_of_constants_along_no_axis": "(float[3] x) => (int64[?] y, float[?] z) <int64[4] w = {1,1,3,2}> "
    "{ y = ReduceProd <noop_with_empty_axes = 1> (w)  z = Neg (x) }",
    "a_branch_that_cancels": "(float[N,M] x, bool c) => (float[?,?] y) { y = If (c) <then_branch = t () => "
    "(float[?,?] a) "
    "{ h = Tanh (x)  a = Sub (h, x) }, else_branch = e () => (float[?,?] b) { b = Identity (x) }> }",
    "a_window_with_one_place_along_two_axes": "(float[2,1,6,5,5] x) => (float[?,?,?,?,?] y) <float s = {0.5}> "
    "{ p = MaxPool <kernel_shape = [2,3,3], strides = [1,3,3]> (x)  y = Div (p, s) }",
    "places_of_a_window_by_division": "(uint8[1,1,5,6] x) => (uint8[?,?,?,?] y) <uint8[1,1,2,2] w = {235,119,62,40}, "
    "float a = {0.06}, uint8 p = {122}, float b = {0.1}, uint8 q = {128}, float c = {0.5}, uint8 r = {134}> "
    "{ y = QLinearConv <dilations = [1,2], kernel_shape = [2,2], pads = [0,0,0,1], strides = [3,3]> "
    "(x, a, p, w, b, q, c, r) }",
    "an_initial_state_of_as_many_rows_as_there_are": "(float[N,K,4] x) => (float[?,?] y) <float[1,1,4] w = "
    "{-0.9,-0.93,-1.5,-0.95}, float[1,1,1] r = {0.36}, float[1,2] b = {-1,2.5}, float[1,1,1] h = {1.35}> "
    '{ v = RNN <direction = "reverse", hidden_size = 1> (x, w, r, b, , h)  y = Det (v) }',
    "the_place_of_one_element_in_a_longer_line": "(float[1,8,2] x) => (float[?,?,?] y, int64[?,?,?] i) "
    "{ y, i = MaxPool <kernel_shape = [1], strides = [2]> (x) }",
    "the_place_of_one_element_in_a_larger_plane": "(float[N,2,3,3] x) => (int64[?,?,?,?] i) "
    "{ y, i = MaxPool <kernel_shape = [1,1], strides = [3,3]> (x) }",
    "mish_of_small_numbers": "(float[N,M] x) => (float[?,?] y) <float c = {12}> { z = Sub (x, c)  y = Mish (z) }",
}

AFFINE = {
    "plane": "(float[N,2,3] t) => (float[?,?,?,?] y) <int64[4] s = {5,2,4,3}> { y = AffineGrid (t, s) }",
    "plane_by_corners": (
        "(float[1,2,3] t) => (float[?,?,?,?] y) <int64[4] s = {1,2,4,3}> { y = AffineGrid <align_corners = 1> (t, s) }"
    ),
    "one_row": "(float[1,2,3] t) => (float[?,?,?,?] y) <int64[4] s = {1,1,1,3}> { y = AffineGrid (t, s) }",
    "space": "(double[2,3,4] t) => (double[?,?,?,?,?] y) <int64[5] s = {2,1,2,4,3}> { y = AffineGrid (t, s) }",
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


@pytest.mark.parametrize("name", AFFINE)
def test_affine_grids_are_native(name: str):
    case = _case(AFFINE[name], 20)
    expected: Any = ReferenceEvaluator(case.model).run(None, dict(case.feeds[0]))
    program = fuseline.compile(case.model, threads=1)
    assert program.stats["host_ops"] == 0
    np.testing.assert_allclose(program.run(case.feeds[0])["y"], np.asarray(expected[0]), atol=1e-6)


def test_an_affine_grid_of_other_sizes_is_refused():
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(_case(AFFINE["plane"].replace("[N,2,3]", "[N,3,4]"), 20).model)
    assert caught.value.code == "E0107"


def test_scalars_of_integers_reach_host_operators_as_scalars():
    """The interpreter in float64 runs Shrink of unsigned integers on the host."""
    text = (
        "(uint8 x) => (uint8[?,?] y) <int64[2] a = {0, 1}> { z = Shrink <bias = 4.0, lambd = 5.0> (x)  y = "
        "Unsqueeze (z, a) }"
    )
    assert check(_case(text)) is None


def test_reads_of_nothing_from_nothing():
    text = "(float[N,M,3] x) => (float[?,?,?,?] y) <int64[1,2,1] i = {0, 4}> { y = GatherND (x, i) }"
    case = _case(text, sizes="0..9")
    shapes = ((5, 3, 3), (0, 0, 3))
    assert check(case.replace(feeds=[{"x": np.ones(shape, np.float32)} for shape in shapes])) is None


def test_arms_that_read_one_number_that_is_known_when_they_run_read_no_argument_in_common():
    """The size is filled into tensors of one element, which each dispatch does for itself."""
    text = (
        "(int8[M,N,13] x) => (int64 y, int64[?] z) <int64[1] i = {0}, int64[1] one = {-1}, int64[2] j = {0, 2}> { "
        "s = Shape (x)  m = Gather (s, i)  c = Concat <axis = 0> (one, m)  y = ReduceMax <keepdims = 0> (c, one)  "
        "z = Gather (s, j) }"
    )
    for fusion in ("none", "default", "aggressive"):
        case = _case(text, 20, fusion=fusion)
        assert check(case.replace(feeds=[{"x": np.ones((m, 3, 13), np.int8)} for m in (1, 5)])) is None


def test_one_number_that_is_read_where_an_index_says_is_nothing_to_go_along():
    text = (
        "(float[1] x) => (float[?] y) <int64[1] one = {1}, float[1] w = {-0.35}> { "
        "most, at = TopK (x, one)  y = Concat <axis = 0> (most, w, x) }"
    )
    assert check(_case(text, 16)) is None


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
    text = (
        "(float[N,8] x, float[M] y) => (float[?,?] z) <int64[1] r = {-1}> { s = Shape (y)  t = Concat <axis = 0> "
        "(r, s)  z = Reshape (x, t) }"
    )
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
    assert fuseline.compile(model, threads=1, shapes={"N": 1}).run({"x": np.ones((1, 1, 3), np.float32)})[
        "y"
    ].shape == (3,)


ATTRIBUTES = {
    "direction": "(uint8[3] x) => (uint8[?] y) <uint8 s = {1}> { y = BitShift <direction = 'UP'> (x, s) }",
    "mode": "(float[1,4,2,2] x) => (float[?,?,?,?] y) { y = DepthToSpace <blocksize = 2, mode = 'RCD'> (x) }",
    "auto_pad": (
        "(float[1,1,4,4] x) => (float[?,?,?,?] y) { y = MaxPool <kernel_shape = [2, 2], auto_pad = 'SAME'> (x) }"
    ),
    "reduction": (
        "(float[3] x, int64[1] i, float[1] u) => (float[?] y) { y = ScatterElements <reduction = 'sum'> (x, i, u) }"
    ),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_an_attribute_that_names_nothing_is_refused(name: str):
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(_case(ATTRIBUTES[name].replace("'", '"')).model, threads=1)
    assert caught.value.code == "E0105" and name in caught.value.message and caught.value.hint is not None


def test_an_attribute_that_is_no_text_is_refused():
    model = _case('(uint8[3] x) => (uint8[?] y) <uint8 s = {1}> { y = BitShift <direction = "LEFT"> (x, s) }').model
    model.graph.node[0].attribute[0].s = b"\xff"
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(model, threads=1)
    assert caught.value.code == "E0105"


def test_indices_deeper_than_their_data_are_refused():
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(_case("(float[3,2] x, int64[4,3] i) => (float[?] y) { y = GatherND (x, i) }").model, threads=1)
    assert caught.value.code in ("E0105", "E0107")


MISFITS = {
    "a window of 3 numbers": "(float[1,2,5] x, float[2,2,1,1,1] w) => (float[?,?,?] y) { y = Conv (x, w) }",
    "strides of 1 numbers": (
        "(float[1,2,5,5] x, float[2,2,1,1] w) => (float[?,?,?,?] y) { y = Conv <strides = [2]> (x, w) }"
    ),
    "dilations of 3 numbers": (
        "(float[1,2,5,5] x, float[2,2,1,1] w) => (float[?,?,?,?] y) { y = ConvTranspose <dilations = [1,1,1]> (x, w) }"
    ),
    "pads of 2 numbers": (
        "(float[1,2,5,5] x) => (float[?,?,?,?] y) { y = MaxPool <kernel_shape = [1,1], pads = [0,0]> (x) }"
    ),
    "the bias has 2 dimensions": (
        "(float[1,2,5,5] x, float[2,2,1,1] w, float[2,1] b) => (float[?,?,?,?] y) { y = Conv (x, w, b) }"
    ),
}


@pytest.mark.parametrize("message", MISFITS)
def test_windows_of_other_ranks_than_their_image_are_refused(message: str):
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(_case(MISFITS[message]).model, threads=1)
    assert caught.value.code in ("E0105", "E0107") and caught.value.node, caught.value


def test_a_filter_of_other_groups_is_refused():
    text = (
        "(float[1,4,5,5] x) => (float[?,?,?,?] y) <float[4,2,1,1] w = {1,2,3,4,5,6,7,8}> { y = Conv <group = 7> "
        "(x, w) }"
    )
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(_case(text).model, threads=1)
    assert caught.value.code in ("E0105", "E0107")
