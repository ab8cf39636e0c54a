"""Models that onnx-ir cannot read by itself: maps and sparse constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import fuseline
from fuseline.errors import FuselineError
from fuseline.frontends.onnx.plain_protos import plain_model

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
MAP = helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, []))
OPSETS = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
X = np.random.default_rng(8).standard_normal((3, 4)).astype(np.float32)


def _model(nodes: list[onnx.NodeProto], inputs: list[Any], outputs: list[Any]) -> onnx.ModelProto:
    return helper.make_model(helper.make_graph(nodes, "g", inputs, outputs), opset_imports=OPSETS, ir_version=10)


def _sparse(name: str, *, flat: bool) -> tuple[onnx.SparseTensorProto, Any]:
    dense = np.zeros((3, 4), np.float32)
    dense[0, 1], dense[2, 3], dense[1, 0] = 2, -3, 5
    indices = np.argwhere(dense) if not flat else np.flatnonzero(dense)
    values = numpy_helper.from_array(dense[dense != 0], name)
    return helper.make_sparse_tensor(values, numpy_helper.from_array(indices.astype(np.int64), "at"), [3, 4]), dense


def _info(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, (3, 4))


@pytest.mark.parametrize("flat", [True, False])
def test_sparse_constants_are_made_dense(flat: bool):
    tensor, dense = _sparse("w", flat=flat)
    proto = _model([helper.make_node("Add", ["x", "w"], ["y"])], [_info("x")], [_info("y")])
    proto.graph.sparse_initializer.append(tensor)
    constant = helper.make_node("Constant", [], ["w"], sparse_value=tensor)
    other = _model([constant, helper.make_node("Add", ["x", "w"], ["y"])], [_info("x")], [_info("y")])
    for model in (proto, other):
        before = model.SerializeToString()
        program = fuseline.compile(model, threads=1)
        assert program.stats["host_ops"] == 0 and model.SerializeToString() == before
        np.testing.assert_array_equal(program.run({"x": X})["y"], X + dense)


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_rows_of_probabilities_as_maps(target: str):
    nodes = [
        helper.make_node("Softmax", ["x"], ["p"], axis=1),
        helper.make_node("ZipMap", ["p"], ["z"], domain="ai.onnx.ml", classlabels_int64s=[5, 6, 7, 8]),
    ]
    output = helper.make_value_info("z", helper.make_sequence_type_proto(MAP))
    program = fuseline.compile(_model(nodes, [_info("x")], [output]), target=target, threads=1)
    assert program.stats["host_ops"] == 1 and program.stats["dispatches"] == 1
    found = program.run({"x": X})["z"]
    wanted = np.exp(X) / np.exp(X).sum(1, keepdims=True)
    assert [list(row) for row in found] == [[5, 6, 7, 8]] * 3
    np.testing.assert_allclose([list(row.values()) for row in found], wanted, rtol=1e-5)


def test_a_map_that_is_fed():
    nodes = [
        helper.make_node("CastMap", ["m"], ["c"], domain="ai.onnx.ml", map_form="SPARSE", max_map=4),
        helper.make_node("Exp", ["c"], ["y"]),
    ]
    proto = _model(nodes, [helper.make_value_info("m", MAP)], [helper.make_tensor_value_info("y", FLOAT, (1, 4))])
    program = fuseline.compile(proto, threads=1)
    assert program.inputs[0].type == "map(int64, tensor(float32))"
    np.testing.assert_allclose(program.run({"m": {1: 0.5, 3: 2.0}})["y"], np.exp([[0, 0.5, 0, 2]]), rtol=1e-6)
    with pytest.raises(FuselineError, match=r"E0204 \[m\]"):
        program.run({"m": [1]})


def test_other_models_are_not_copied():
    proto = _model([helper.make_node("Relu", ["x"], ["y"])], [_info("x")], [_info("y")])
    assert plain_model(proto)[0] is proto


def test_indices_outside_a_sparse_tensor_are_refused():
    tensor, _ = _sparse("w", flat=True)
    tensor.dims[:] = [2, 2]
    proto = _model([helper.make_node("Add", ["x", "w"], ["y"])], [_info("x")], [_info("y")])
    proto.graph.sparse_initializer.append(tensor)
    with pytest.raises(FuselineError, match="E0105"):
        fuseline.compile(proto)


def test_types_that_make_no_sense_are_refused():
    info = onnx.ValueInfoProto(name="q")
    info.type.sequence_type.SetInParent()
    with pytest.raises(FuselineError, match="E0105"):
        fuseline.compile(
            _model([helper.make_node("SequenceLength", ["q"], ["n"])], [info], [onnx.ValueInfoProto(name="n")])
        )


def test_operators_of_classical_models_are_native():
    """onnx.shape_inference knows nothing of these three."""
    nodes = [
        helper.make_node(
            "Imputer", ["x"], ["i"], domain="ai.onnx.ml", imputed_value_floats=[7.0], replaced_value_float=1.0
        ),
        helper.make_node("Scaler", ["i"], ["s"], domain="ai.onnx.ml", offset=[0.0, 1, 2, 3], scale=[1.0, 2, 3, 4]),
        helper.make_node("Normalizer", ["s"], ["n"], domain="ai.onnx.ml", norm="L1"),
        helper.make_node("Exp", ["n"], ["y"]),
    ]
    infos = [helper.make_tensor_value_info(name, FLOAT, ("n", 4)) for name in "xy"]
    program = fuseline.compile(_model(nodes, infos[:1], infos[1:]), threads=1)
    assert program.stats["host_ops"] == 0 and program.stats["dispatches"] == 1 and program.outputs[0].shape == ("n", 4)
    x = np.array([[1, 2, 3, 5], [4, 1, 0, 2]], np.float32)
    scaled = (np.where(x == 1, 7, x) - [0, 1, 2, 3]) * [1, 2, 3, 4]
    np.testing.assert_allclose(
        program.run({"x": x})["y"], np.exp(scaled / np.abs(scaled).sum(1, keepdims=True)), rtol=1e-5
    )


def test_a_node_without_outputs_is_nothing():
    """Converters leave such behind; other runtimes take them."""
    idle = helper.make_node("If", [], [], name="idle")
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"]), idle],
        "g",
        [helper.make_tensor_value_info("x", 1, [2])],
        [helper.make_tensor_value_info("y", 1, [2])],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    fed = np.array([-1.0, 2.0], np.float32)
    np.testing.assert_array_equal(fuseline.compile(proto, target="interpreter").run({"x": fed})["y"], [0.0, 2.0])
    assert len(proto.graph.node) == 2
