"""What is known of values that tensors of the IR cannot be."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, TypeProto, helper, numpy_helper

from fuseline.frontends.onnx import host_values
from fuseline.frontends.onnx.host_values import HostValue
from fuseline.frontends.onnx.tensors import Tensor, known
from fuseline.ir.dim import symbol, to_text

N = symbol("n")
FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
TEXTS = helper.make_tensor_type_proto(TensorProto.STRING, None)
SEQUENCE = helper.make_sequence_type_proto(FLOATS)
EIGHTH = helper.make_tensor_type_proto(TensorProto.FLOAT8E4M3FN, None)


def _map(key: int, value: TypeProto) -> TypeProto:
    return helper.make_map_type_proto(key, value)


@pytest.mark.parametrize(
    ("type_", "dims", "text", "dtype"),
    [
        (TEXTS, (N, 2), "tensor(string)", "object"),
        (TEXTS, None, "any_rank(tensor(string))", "object"),
        (FLOATS, None, "any_rank(tensor(float32))", "object"),
        (EIGHTH, (2,), "tensor(float8_e4m3fn)", "float8_e4m3fn"),
        (SEQUENCE, None, "seq(tensor(float32))", "object"),
        (helper.make_optional_type_proto(SEQUENCE), None, "optional(seq(tensor(float32)))", "object"),
        (_map(TensorProto.INT64, FLOATS), None, "map(int64, tensor(float32))", "object"),
        (_map(TensorProto.STRING, FLOATS), None, "map(string, tensor(float32))", "object"),
        (TypeProto(), None, "any", "object"),
        (helper.make_tensor_type_proto(0, None), (2,), "any", "object"),
    ],
)
def test_types_as_the_runtime_writes_them(type_: TypeProto, dims: Any, text: str, dtype: str) -> None:
    value = HostValue(type_, dims)
    assert (host_values.type_text(value), host_values.dtype_text(value)) == (text, dtype)


def test_known_content() -> None:
    texts = host_values.known_value(np.array([["a", "b"]], object), "w")
    assert (texts.type, texts.dims, texts.name) == (TEXTS, (1, 2), "w")
    small = host_values.known_value(np.ones((3,), ml_dtypes.float8_e4m3fn))
    assert (small.type, small.dims) == (EIGHTH, (3,))
    assert small.content is not None and small.content.shape == (3,)


@pytest.mark.parametrize("array", [np.array([["ä", ""], ["b", "c"]], object), np.array("x", object)])
def test_strings_of_a_constant(array: Any) -> None:
    found = host_values.content_of(ir.from_proto(numpy_helper.from_array(array, "w")))
    assert (found.dtype, found.tolist()) == (object, array.tolist())


def test_numbers_of_a_constant() -> None:
    array = np.random.default_rng().standard_normal((2, 3))
    np.testing.assert_array_equal(host_values.content_of(ir.tensor(array)), array)


def test_types_with_sizes_and_without() -> None:
    tensor = Tensor(np.dtype(np.int8), (N, 3))
    sized = host_values.sized_type(tensor, lambda dim: f"size {to_text(dim)}")
    assert sized == helper.make_tensor_type_proto(TensorProto.INT8, ["size n", 3])
    assert host_values.without_sizes(sized) == host_values.type_of(tensor)
    assert host_values.type_of(tensor) == helper.make_tensor_type_proto(TensorProto.INT8, None)
    assert sized.tensor_type.HasField("shape")  # what `without_sizes` changed was a copy
    scalar = host_values.sized_type(HostValue(TEXTS, ()), str)
    assert scalar == helper.make_tensor_type_proto(TensorProto.STRING, [])
    assert host_values.sized_type(HostValue(TEXTS), str) == TEXTS
    sequence = helper.make_sequence_type_proto(sized)
    assert host_values.without_sizes(sequence) == sequence


def test_elements_that_tensors_of_the_ir_hold() -> None:
    assert host_values.element_dtype(FLOATS) == np.float32
    for type_ in (TEXTS, EIGHTH, TypeProto(), helper.make_sequence_type_proto(FLOATS)):
        assert host_values.element_dtype(type_) is None


def test_which_inputs_are_on_the_host() -> None:
    values = [None, known(np.ones(3)), HostValue(TEXTS, (2,)), HostValue(helper.make_sequence_type_proto(FLOATS))]
    assert host_values.describe(values) == "input 2 is tensor(string), input 3 is seq(tensor(float32))"
