"""Weights read where they lie in the file are the weights that the parser reads; what is not plain goes to the
parser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.model_file import load_model
from fuseline.frontends.onnx.weights_in_place import LEAST_BYTES, split_model

DTYPES = ["float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"]
LARGE = (LEAST_BYTES // 2, 3)


def _array(rng: np.random.Generator, dtype: str, shape: tuple[int, ...] = LARGE) -> NDArray[Any]:
    return rng.integers(0, 100, shape).astype(dtype) if dtype[0] in "iu" else rng.standard_normal(shape).astype(dtype)


def _model(initializers: list[TensorProto]) -> onnx.ModelProto:
    """A model that returns its first initializer, with fields before, between and after the others."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"], name="relu")], "graph", [x], [y], initializers, doc_string="after" * 40
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], producer_name="test")


def _save(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def _values(model: ir.Model) -> dict[str, NDArray[Any]]:
    return {
        name: np.asarray(value.const_value.numpy())
        for name, value in model.graph.initializers.items()
        if value.const_value is not None
    }


def _assert_equal_to_parser(path: Path, model: onnx.ModelProto) -> None:
    loaded, expected = _values(load_model(path).model), _values(ir.from_proto(model))
    assert list(loaded) == list(expected)
    for name, array in expected.items():
        assert loaded[name].dtype == array.dtype
        np.testing.assert_array_equal(loaded[name], array, strict=True)


def test_every_plain_type_and_small_ones_between(tmp_path: Path):
    rng = np.random.default_rng(3)
    arrays = [_array(rng, dtype) for dtype in DTYPES]
    small = [_array(rng, "float32", (3,)), _array(rng, "int64", ())]
    model = _model([numpy_helper.from_array(array, f"w{i}") for i, array in enumerate([small[0], *arrays, small[1]])])
    path = _save(model, tmp_path)
    split = split_model(path)
    assert split is not None
    assert sorted(split.where) == list(range(1, len(DTYPES) + 1))
    assert len(split.proto.SerializeToString()) < LEAST_BYTES
    assert split.proto.graph.doc_string == model.graph.doc_string and split.proto.producer_name == "test"
    _assert_equal_to_parser(path, model)


def test_weights_are_not_copied(tmp_path: Path):
    array = _array(np.random.default_rng(4), "float32")
    path = _save(_model([numpy_helper.from_array(array, "w")]), tmp_path)
    loaded = _values(load_model(path).model)["w"]
    assert not loaded.flags.owndata and not loaded.flags.writeable


def test_data_in_typed_fields_goes_to_the_parser(tmp_path: Path):
    array = _array(np.random.default_rng(5), "float32")
    model = _model([helper.make_tensor("w", TensorProto.FLOAT, array.shape, array.reshape(-1).tolist())])
    path = _save(model, tmp_path)
    split = split_model(path)
    assert split is not None and not split.where
    _assert_equal_to_parser(path, model)


def test_other_types_go_to_the_parser(tmp_path: Path):
    bits = np.random.default_rng(6).integers(0, 0x7F00, LARGE).astype(np.uint16)
    tensor = TensorProto(name="w", data_type=TensorProto.BFLOAT16, dims=bits.shape, raw_data=bits.tobytes())
    model = _model([tensor, numpy_helper.from_array(_array(np.random.default_rng(7), "float32"), "plain")])
    path = _save(model, tmp_path)
    split = split_model(path)
    assert split is not None and list(split.where) == [1]
    _assert_equal_to_parser(path, model)


def test_a_name_that_stands_twice_goes_to_the_parser(tmp_path: Path):
    rng = np.random.default_rng(8)
    model = _model(
        [
            numpy_helper.from_array(_array(rng, "float32"), "w"),
            numpy_helper.from_array(_array(rng, "float32", (2,)), "w"),
        ]
    )
    assert split_model(_save(model, tmp_path)) is None


@pytest.mark.parametrize("change", [4, -4, 1])
def test_data_of_another_length_goes_to_the_parser(tmp_path: Path, change: int):
    array = _array(np.random.default_rng(9), "float32")
    raw = array.tobytes() + bytes(4)
    model = _model(
        [TensorProto(name="w", data_type=TensorProto.FLOAT, dims=array.shape, raw_data=raw[: array.nbytes + change])]
    )
    assert split_model(_save(model, tmp_path)) is None


def test_a_truncated_file_is_refused(tmp_path: Path):
    data = _model([numpy_helper.from_array(_array(np.random.default_rng(10), "float32"), "w")]).SerializeToString()
    rng = np.random.default_rng(11)
    for cut in (0, 1, len(data) - 1, *rng.integers(2, len(data) - 1, 12)):
        path = tmp_path / "cut.onnx"
        path.write_bytes(data[: int(cut)])
        with pytest.raises(FuselineError) as caught:
            load_model(path)
        assert caught.value.code in ("E0101", "E0102")


def test_bytes_that_are_no_message_are_refused(tmp_path: Path):
    path = tmp_path / "noise.onnx"
    path.write_bytes(np.random.default_rng(12).bytes(5000))
    assert split_model(path) is None
    with pytest.raises(FuselineError):
        load_model(path)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(FuselineError) as caught:
        load_model(tmp_path / "none.onnx")
    assert caught.value.code == "E0101"
