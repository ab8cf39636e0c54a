"""Models that onnx-ir cannot read by itself: maps and sparse constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import fuseline
from fuseline.errors import FuselineError
from fuseline.frontends.onnx.plain_protos import plain_model
from tests.graphs.onnx_text import onnx_model

X = np.random.default_rng(8).standard_normal((3, 4)).astype(np.float32)


def _model(text: str) -> onnx.ModelProto:
    return onnx_model(text, imports={"": 21, "ai.onnx.ml": 3})


def _adding() -> onnx.ModelProto:
    return _model("(float[3, 4] x) => (float[3, 4] y) { y = Add(x, w) }")


def _sparse(name: str, *, flat: bool) -> tuple[onnx.SparseTensorProto, Any]:
    dense = np.zeros((3, 4), np.float32)
    dense[0, 1], dense[2, 3], dense[1, 0] = 2, -3, 5
    indices = np.argwhere(dense) if not flat else np.flatnonzero(dense)
    values = numpy_helper.from_array(dense[dense != 0], name)
    return helper.make_sparse_tensor(values, numpy_helper.from_array(indices.astype(np.int64), "at"), [3, 4]), dense


@pytest.mark.parametrize("flat", [True, False])
def test_sparse_constants_are_made_dense(flat: bool):
    tensor, dense = _sparse("w", flat=flat)
    proto, other = _adding(), _adding()
    proto.graph.sparse_initializer.append(tensor)
    other.graph.node.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=tensor))
    for model in (proto, other):
        before = model.SerializeToString()
        program = fuseline.compile(model, threads=1)
        assert program.stats["host_ops"] == 0 and model.SerializeToString() == before
        np.testing.assert_array_equal(program.run({"x": X})["y"], X + dense)


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_rows_of_probabilities_as_maps(target: str):
    nodes = "p = Softmax<axis = 1>(x)  z = ai.onnx.ml.ZipMap<classlabels_int64s = [5, 6, 7, 8]>(p)"
    model = _model(f"(float[3, 4] x) => (seq(map(int64, float)) z) {{ {nodes} }}")
    program = fuseline.compile(model, target=target, threads=1)
    assert program.stats["host_ops"] == 1 and program.stats["dispatches"] == 1
    found = program.run({"x": X})["z"]
    wanted = np.exp(X) / np.exp(X).sum(1, keepdims=True)
    assert [list(row) for row in found] == [[5, 6, 7, 8]] * 3
    np.testing.assert_allclose([list(row.values()) for row in found], wanted, rtol=1e-5)


def test_a_map_that_is_fed():
    nodes = 'c = ai.onnx.ml.CastMap<map_form = "SPARSE", max_map = 4>(m)  y = Exp(c)'
    proto = _model(f"(map(int64, float) m) => (float[1, 4] y) {{ {nodes} }}")
    program = fuseline.compile(proto, threads=1)
    assert program.inputs[0].type == "map(int64, tensor(float32))"
    np.testing.assert_allclose(program.run({"m": {1: 0.5, 3: 2.0}})["y"], np.exp([[0, 0.5, 0, 2]]), rtol=1e-6)
    with pytest.raises(FuselineError, match=r"E0204 \[m\]"):
        program.run({"m": [1]})


def test_other_models_are_not_copied():
    proto = _model("(float[3, 4] x) => (float[3, 4] y) { y = Relu(x) }")
    assert plain_model(proto)[0] is proto


def test_indices_outside_a_sparse_tensor_are_refused():
    tensor, _ = _sparse("w", flat=True)
    tensor.dims[:] = [2, 2]
    proto = _adding()
    proto.graph.sparse_initializer.append(tensor)
    with pytest.raises(FuselineError, match="E0105"):
        fuseline.compile(proto)


def test_types_that_make_no_sense_are_refused():
    proto = _model("(q) => (n) { n = SequenceLength(q) }")
    proto.graph.input[0].type.sequence_type.SetInParent()
    with pytest.raises(FuselineError, match="E0105"):
        fuseline.compile(proto)


def test_operators_of_classical_models_are_native():
    """onnx.shape_inference knows nothing of these three."""
    nodes = (
        "i = ai.onnx.ml.Imputer<imputed_value_floats = [7.0], replaced_value_float = 1.0>(x)"
        "  s = ai.onnx.ml.Scaler<offset = [0.0, 1.0, 2.0, 3.0], scale = [1.0, 2.0, 3.0, 4.0]>(i)"
        '  n = ai.onnx.ml.Normalizer<norm = "L1">(s)  y = Exp(n)'
    )
    program = fuseline.compile(_model(f"(float[n, 4] x) => (float[n, 4] y) {{ {nodes} }}"), threads=1)
    assert program.stats["host_ops"] == 0 and program.stats["dispatches"] == 1 and program.outputs[0].shape == ("n", 4)
    x = np.array([[1, 2, 3, 5], [4, 1, 0, 2]], np.float32)
    scaled = (np.where(x == 1, 7, x) - [0, 1, 2, 3]) * [1, 2, 3, 4]
    np.testing.assert_allclose(
        program.run({"x": x})["y"], np.exp(scaled / np.abs(scaled).sum(1, keepdims=True)), rtol=1e-5
    )


def test_a_node_without_outputs_is_nothing():
    """Converters leave such behind; other runtimes take them."""
    proto = onnx_model("(float[2] x) => (float[2] y) { y = Relu(x)  [idle] = If() }")
    fed = np.array([-1.0, 2.0], np.float32)
    np.testing.assert_array_equal(fuseline.compile(proto, target="interpreter").run({"x": fed})["y"], [0.0, 2.0])
    assert len(proto.graph.node) == 2
