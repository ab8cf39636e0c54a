"""Models whose dispatches are functions are read as the models that they were made from, whatever was done to them
meanwhile."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import fuseline
from fuseline.frontends.onnx.dispatch_functions import DOMAIN, without_dispatch_functions
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model


def _normal(*sizes: int) -> np.ndarray:
    return RNG.standard_normal(sizes).astype(np.float32)


@pytest.fixture
def model() -> onnx.ModelProto:
    return onnx_model(
        "(float[96, 128] x) => (float[96, 96] y, float[96, 8] z)"
        "{ [one] t = MatMul(x, w)  [two] u = Softmax<axis = 0>(t)  [three] y = MatMul(u, v)  [four] z = MatMul(u, s) }",
        w=_normal(128, 120),
        v=_normal(120, 96),
        s=_normal(120, 8),
    )


def _fused(model: onnx.ModelProto) -> onnx.ModelProto:
    fused = fuseline.fuse(model, fusion="none").to_proto()
    assert any(node.domain == DOMAIN for node in fused.graph.node)
    return fused


def _same(one: onnx.ModelProto, other: onnx.ModelProto) -> None:
    x = _normal(96, 128)
    expected, found = (fuseline.compile(m, target="interpreter").run({"x": x}) for m in (one, other))
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5)


def test_a_model_without_them_is_the_same_object(model: onnx.ModelProto):
    assert without_dispatch_functions(model) is model


def test_nodes_come_back_under_their_names(model: onnx.ModelProto):
    whole = without_dispatch_functions(_fused(model))
    assert [(node.name, list(node.input), list(node.output)) for node in whole.graph.node] == [
        (node.name, list(node.input), list(node.output)) for node in model.graph.node
    ]
    assert not whole.functions


def test_records_name_the_nodes_of_the_model(model: onnx.ModelProto):
    record = fuseline.compile(_fused(model), target="null").record
    assert record.source_nodes == ["one", "two", "three", "four"]
    assert {name for one in record.dispatches for member in one.members for name in member.nodes} == {
        *record.source_nodes
    }


def test_a_compile_gives_the_same_partition(model: onnx.ModelProto):
    ours, again = (
        fuseline.compile(one, threads=2).record for one in (model, fuseline.fuse(model, threads=2).to_proto())
    )
    assert ours.groups == again.groups and ours.fingerprint == again.fingerprint
    assert [one.label for one in ours.dispatches] == [one.label for one in again.dispatches]


def test_values_between_functions_may_have_other_names(model: onnx.ModelProto):
    fused = _fused(model)
    for node in fused.graph.node:
        node.input[:] = [f"other_{name}" if name in ("t", "u") else name for name in node.input]
        node.output[:] = [f"other_{name}" if name in ("t", "u") else name for name in node.output]
    _same(model, fused)


def test_a_value_outside_may_have_the_name_of_one_inside():
    model = onnx_model("(float[4, 8] x) => (float[4, 8] y) { t = Exp(x)  y = Relu(t) }")
    fused = fuseline.fuse(model).to_proto()
    fused.graph.node.append(helper.make_node("Neg", ["y"], ["t"]))
    fused.graph.output.append(helper.make_tensor_value_info("t", onnx.TensorProto.FLOAT, [4, 8]))
    x = _normal(4, 8)
    found = fuseline.compile(fused, target="interpreter").run({"x": x})
    np.testing.assert_allclose(found["t"], -np.exp(x), rtol=1e-5)


def test_a_function_may_be_called_twice(model: onnx.ModelProto):
    model = onnx_model("(float[4, 8] x) => (float[4, 8] y) { t = Exp(x)  y = Relu(t) }")
    fused = fuseline.fuse(model).to_proto()
    (call,) = fused.graph.node
    call.output[:] = ["mid"]
    fused.graph.node.append(helper.make_node(call.op_type, ["mid"], ["y"], name="twice", domain=DOMAIN))
    x = _normal(4, 8)
    found = fuseline.compile(fused, target="interpreter").run({"x": x})
    np.testing.assert_allclose(found["y"], np.exp(np.exp(x)), rtol=1e-5)


def test_without_metadata_nodes_stay_in_the_order_of_functions(model: onnx.ModelProto):
    fused = _fused(model)
    for function in fused.functions:
        for node in function.node:
            del node.metadata_props[:]
    _same(model, fused)


def test_a_call_with_attributes_is_left_to_the_function_itself():
    model = onnx_model("(float[4, 8] x) => (float[4, 8] y) { t = Exp(x)  y = Relu(t) }")
    fused = fuseline.fuse(model).to_proto()
    fused.functions[0].attribute.append("alpha")
    assert without_dispatch_functions(fused) is fused
    _same_small = fuseline.compile(fused, target="interpreter").run({"x": np.ones((4, 8), np.float32)})
    np.testing.assert_allclose(_same_small["y"], np.e, rtol=1e-5)


def test_a_result_that_nobody_takes_may_be_left_out():
    model = onnx_model("(float[4, 8] x) => (float[4, 8] y, float[4, 8] t) { t = Exp(x)  y = Relu(t) }")
    fused = fuseline.fuse(model).to_proto()
    (call,) = fused.graph.node
    call.output[list(call.output).index("t")] = ""
    del fused.graph.output[1]
    x = _normal(4, 8)
    np.testing.assert_allclose(fuseline.compile(fused, target="interpreter").run({"x": x})["y"], np.exp(x), rtol=1e-5)


def test_a_graph_inside_a_node_may_have_the_names_of_a_function():
    model = onnx_model("(float[4, 8] x, bool c) => (float[4, 8] y) { t = Exp(x)  y = Relu(t) }")
    fused = fuseline.fuse(model).to_proto()
    branches: dict[str, Any] = {
        f"{which}_branch": onnx.parser.parse_graph(f"{which} () => (float[4, 8] o) {{ t = {op}(y)  o = Abs(t) }}")
        for which, op in (("then", "Neg"), ("else", "Exp"))
    }
    fused.graph.node.append(helper.make_node("If", ["c"], ["z"], **branches))
    fused.graph.output.append(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [4, 8]))
    x = _normal(4, 8)
    found = fuseline.compile(fused, target="interpreter").run({"x": x, "c": np.array(True)})
    np.testing.assert_allclose(found["z"], np.exp(x), rtol=1e-5)
