"""A widened model computes in float64 what the model says in float32."""

from __future__ import annotations

import numpy as np
import onnx
from benchmarks.widened import in_float64
from onnx import TensorProto, helper, numpy_helper

import fuseline


def _floats(name: str, shape: list[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model() -> onnx.ModelProto:
    """A contraction, constants of every kind, a cast, a filled shape and an `If` with weights of its own."""
    rng = np.random.default_rng(3)
    weights = numpy_helper.from_array(rng.standard_normal((5, 7)).astype(np.float32), "w")
    inner = numpy_helper.from_array(rng.standard_normal(7).astype(np.float32), "bias")
    branches = [
        helper.make_graph(
            [helper.make_node(op, ["y", "bias"], [op])],
            op,
            [],
            [helper.make_tensor_value_info(op, TensorProto.FLOAT, [3, 7])],
            [inner],
        )
        for op in ("Add", "Mul")
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Constant", [], ["third"], value_float=1 / 3),
        helper.make_node("Constant", [], ["rows"], value_floats=[0.1] * 7),
        helper.make_node("ConstantOfShape", ["sizes"], ["zeros"]),
        helper.make_node("Cast", ["flags"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Sum", ["product", "third", "rows", "zeros", "wide"], ["y"]),
        helper.make_node("If", ["yes"], ["z"], then_branch=branches[0], else_branch=branches[1]),
    ]
    sizes = numpy_helper.from_array(np.array([3, 7]), "sizes")
    inputs = [
        _floats("x", [3, 5]),
        helper.make_tensor_value_info("flags", TensorProto.INT32, [7]),
        helper.make_tensor_value_info("yes", TensorProto.BOOL, []),
    ]
    graph = helper.make_graph(nodes, "g", inputs, [_floats("z", [3, 7])], [weights, sizes])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_every_float32_becomes_float64():
    wide = in_float64(model())
    onnx.checker.check_model(wide, full_check=True)
    rng = np.random.default_rng(4)
    x, flags = rng.standard_normal((3, 5)), rng.integers(0, 2, 7).astype(np.int32)
    weights, bias = (
        numpy_helper.to_array(tensor).astype(np.float64)
        for tensor in (wide.graph.initializer[0], wide.graph.node[-1].attribute[0].g.initializer[0])
    )
    expected = x @ weights + np.float32(1 / 3) + np.float32(0.1) + flags
    for yes, result in ((True, expected + bias), (False, expected * bias)):
        found = fuseline.compile(wide, target="interpreter").run({"x": x, "flags": flags, "yes": np.array(yes)})["z"]
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, result, rtol=1e-13)


def test_the_model_itself_stays():
    given = model()
    before = given.SerializeToString()
    in_float64(given)
    assert given.SerializeToString() == before
