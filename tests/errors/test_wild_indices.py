"""Indices outside their tensor: fed or stored in the model, they may give any value but never a read outside."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import fuseline
from fuseline.errors import FuselineError

TABLE = np.random.default_rng(0).standard_normal((7, 33), dtype=np.float32)
WILD = np.array([0, 6, -1, -7, 7, -8, 10**9, -(10**9), 2**62, -(2**63)], np.int64)


def _model(constant: bool) -> onnx.ModelProto:
    ids = helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, [len(WILD)])
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [7, 33])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [len(WILD), 33])
    initializers = [numpy_helper.from_array(WILD, "ids")] if constant else []
    graph = helper.make_graph(
        [helper.make_node("Gather", ["x", "ids"], ["y"], axis=0)], "g", [x] if constant else [x, ids], [y], initializers
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("constant", [False, True])
def test_wild_indices_stay_inside(constant: bool):
    model = fuseline.compile(_model(constant), threads=1)
    out = model.run({"x": TABLE} if constant else {"x": TABLE, "ids": WILD})["y"]
    np.testing.assert_array_equal(out[:4], TABLE[[0, 6, 6, 0]])
    assert all((row == TABLE).all(axis=1).any() for row in out)


def _with_free_sizes(node: onnx.NodeProto, inputs: dict[str, tuple[int, tuple[int | str, ...]]]) -> onnx.ModelProto:
    infos = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()]
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name="y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


X, IDS = (onnx.TensorProto.FLOAT, ("n", 3)), onnx.TensorProto.INT64
FREE = {
    "Gather": (helper.make_node("Gather", ["x", "i"], ["y"]), (IDS, ("m",)), (0, 3), (4,)),
    "GatherElements": (helper.make_node("GatherElements", ["x", "i"], ["y"], axis=1), (IDS, ("m", 3)), (2, 3), (5, 3)),
    "GatherND": (helper.make_node("GatherND", ["x", "i"], ["y"]), (IDS, ("m", 1)), (0, 3), (4, 1)),
    "GatherND in batches": (
        helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=1),
        (IDS, ("m", 1)),
        (2, 3),
        (3, 1),
    ),
    "GatherND in more batches": (
        helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=1),
        (IDS, ("m", 1)),
        (4, 3),
        (3, 1),
    ),
}


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("name", FREE)
def test_sizes_without_the_places_are_refused(name: str, target: str):
    node, indices, table, places = FREE[name]
    model = fuseline.compile(
        _with_free_sizes(node, {"x": X, "i": indices}), threads=1, target=target, shapes={"n": (0, 9), "m": (0, 9)}
    )
    with pytest.raises(FuselineError) as error:
        model.run({"x": np.ones(table, np.float32), "i": np.zeros(places, np.int64)})
    assert error.value.code == "E0203" and error.value.node
    assert model.run({"x": np.ones((0, 3), np.float32), "i": np.zeros((0, *places[1:]), np.int64)})["y"].shape[0] == 0


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("step", [-1, -2])
@pytest.mark.parametrize("size", ["0", "n"])
def test_slices_of_nothing_read_nothing(size: str, step: int, target: str):
    node = helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["y"])
    numbers = {"s": 99, "e": -99, "a": 0, "t": step}
    constants = [numpy_helper.from_array(np.array([value]), name) for name, value in numbers.items()]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [0 if size == "0" else size, 2])
    graph = helper.make_graph([node], "g", [x], [onnx.ValueInfoProto(name="y")], constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    model = fuseline.compile(proto, threads=1, target=target, shapes={} if size == "0" else {"n": (0, 9)})
    for count in [0] if size == "0" else [0, 1, 4]:
        rows = np.random.default_rng(count).standard_normal((count, 2), dtype=np.float32)
        np.testing.assert_array_equal(model.run({"x": rows})["y"], rows[::step])
