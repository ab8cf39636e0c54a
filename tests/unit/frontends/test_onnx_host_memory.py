"""Values that the host holds beside memory that is used again: compiled, and on the interpreter, which lays memory out
alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import fuseline

node = helper.make_node
F, I64 = TensorProto.FLOAT, TensorProto.INT64


def _model(nodes: list[Any], inputs: list[Any], outputs: list[str], **constants: Any) -> onnx.ModelProto:
    infos = [helper.make_tensor_value_info(name, element, shape) for name, element, shape in inputs]
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name=name) for name in outputs], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def _data(seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((4, 8), dtype=np.float32), rng.standard_normal((8, 8), dtype=np.float32)


def _loop() -> onnx.NodeProto:
    """A state of unknown rank through as many tanh as `n` says."""
    values = [
        helper.make_tensor_value_info(name, element, []) for name, element in (("i", I64), ("go", TensorProto.BOOL))
    ]
    state, result = (helper.make_tensor_value_info(name, F, None) for name in ("s", "o"))
    body = helper.make_graph(
        [node("Tanh", ["s"], ["o"]), node("Identity", ["go"], ["on"])], "b", [*values, state], [values[1], result]
    )
    body.output[0].name = "on"
    return node("Loop", ["n", "", "a"], ["y"], body=body)


WAYS: dict[str, list[Any]] = {
    "sequence": [node("SequenceConstruct", ["a"], ["s"]), node("SequenceAt", ["s", "zero"], ["y"])],
    "split": [node("SplitToSequence", ["a"], ["s"], axis=0), node("ConcatFromSequence", ["s"], ["y"], axis=0)],
    "optional": [node("Optional", ["a"], ["s"]), node("OptionalGetElement", ["s"], ["y"])],
    "sequence of sequences' parts": [
        node("SplitToSequence", ["a"], ["p"], axis=0),
        node("SequenceErase", ["p", "zero"], ["q"]),
        node("SequenceInsert", ["q", "first", "zero"], ["s"]),
        node("ConcatFromSequence", ["s"], ["y"], axis=0),
    ],
    "loop": [_loop()],
}


def way_model(way: str) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """The product lies in the arena; the host holds it while a softmax and another product take its place. The model,
    and feeds."""
    (x, w), more = _data(), [node("Slice", ["a", "zeros", "ones", "zeros"], ["first"])] if "parts" in way else []
    (*making, reading), after = WAYS[way], [node("Softmax", ["x"], ["c"], axis=0), node("MatMul", ["c", "w"], ["e"])]
    nodes = [node("MatMul", ["x", "w"], ["a"]), *more, *making, *after, reading]
    inputs, feeds = [("x", F, [4, 8])], {"x": x}
    if way == "loop":
        inputs, feeds = [*inputs, ("n", I64, [])], {"x": x, "n": np.array(0)}
    constants = (
        {"zero": np.array(0), "zeros": np.array([0]), "ones": np.array([1])}
        if way in ("sequence", "sequence of sequences' parts")
        else {}
    )
    return _model(nodes, inputs, ["y", "e"], w=w, **constants), feeds


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("way", WAYS)
def test_what_the_host_holds_outlives_its_memory(way: str, target: str) -> None:
    (model, feeds), (x, w) = way_model(way), _data()
    program = fuseline.compile(model, threads=1, fusion="none", target=target)
    for sign in (1, -1):
        out = program.run({**feeds, "x": sign * x})
        np.testing.assert_allclose(out["y"], sign * x @ w, atol=1e-5)
    if way == "loop":
        np.testing.assert_allclose(program.run({**feeds, "n": np.array(2)})["y"], np.tanh(np.tanh(x @ w)), atol=1e-5)


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_outputs_are_the_callers_alone(target: str) -> None:
    """An output that is an input, a constant, or another output, in memory and held, is an array of its own."""
    x, w = _data()
    names = ["whole", "parts", "again", "held", "constant", "twice"]
    nodes = [
        node("Identity", ["x"], ["whole"]),
        node("SplitToSequence", ["x"], ["parts"], axis=0),
        node("Identity", ["parts"], ["again"]),
        node("Identity", ["u"], ["held"]),
        node("Identity", ["k"], ["constant"]),
        node("Identity", ["held"], ["twice"]),
    ]
    program = fuseline.compile(_model(nodes, [("x", F, [4, 8]), ("u", F, None)], names, k=w), threads=1, target=target)
    feeds = {"x": x.copy(), "u": x}  # and the same array twice, below
    for given in (feeds, {"x": feeds["x"], "u": feeds["x"]}, {"x": feeds["x"], "u": feeds["x"][1:]}):
        out = program.run(given)
        leaves = [leaf for value in out.values() for leaf in (value if isinstance(value, list) else [value])]
        wanted = [x, *x, *x, given["u"], w, given["u"]]
        for leaf, expected in zip(leaves, [array.copy() for array in wanted], strict=True):
            np.testing.assert_array_equal(leaf.reshape(expected.shape), expected)
            leaf[...] = 9
        np.testing.assert_array_equal(feeds["x"], x)
