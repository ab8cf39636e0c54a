"""Graphs that break ONNX's rules are refused with E0105 (or E0103, E0107) naming the node, value or function at fault;
never with a traceback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import AttributeProto, TensorProto, helper, numpy_helper

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG, generator

Array: TypeAlias = NDArray[Any]
W = generator(__name__).standard_normal((2, 3)).astype(np.float32)
IMPORTS = [helper.make_opsetid("", 17), helper.make_opsetid("d", 1)]


def info(name: str, dims: list[int] | None = None, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, dims)


def op(op_type: str, inputs: str, outputs: str = "y", name: str = "node", **attributes: Any) -> onnx.NodeProto:
    """A node; `-` stands for an empty name."""
    names = [["" if part == "-" else part for part in text.split()] for text in (inputs, outputs)]
    return helper.make_node(op_type, names[0], names[1], name=name, **attributes)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto] = (info("x", [2, 3]),),
    outputs: Sequence[onnx.ValueInfoProto] = (info("y"),),
    imports: Sequence[onnx.OperatorSetIdProto] = IMPORTS,
    functions: Sequence[onnx.FunctionProto] = (),
    ir_version: int = 8,
    **weights: Array,
) -> onnx.ModelProto:
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=ir_version)


def twice(first: Array, second: Array) -> onnx.ModelProto:
    proto = model([op("Add", "x w")], w=first)
    proto.graph.initializer.append(numpy_helper.from_array(second, "w"))
    return proto


def function(
    name: str, *nodes: onnx.NodeProto, inputs: str = "a", imports: Sequence[onnx.OperatorSetIdProto] = IMPORTS
) -> onnx.FunctionProto:
    return helper.make_function("d", name, inputs.split(), ["b"], nodes, imports)


def calling(*functions: onnx.FunctionProto, given: str = "x") -> onnx.ModelProto:
    return model([op("f", given, domain="d")], functions=functions)


def inner(op_type: str, inputs: str, output: str = "t", **attributes: Any) -> onnx.GraphProto:
    return helper.make_graph([op(op_type, inputs, output, "inner", **attributes)], "branch", [], [info(output)])


def choosing(then: onnx.GraphProto, *before: onnx.NodeProto, condition: str = "k") -> onnx.ModelProto:
    node = op("If", condition, then_branch=then, else_branch=inner("Neg", "x", "e"))
    return model([*before, node], [info("x", [2, 3]), info("k", [], TensorProto.BOOL)])


def looping(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    state, go = info("s"), info("c", [], TensorProto.BOOL)
    body = helper.make_graph(nodes, "body", [info("i", [], TensorProto.INT64), go, state], [go, info("t")])
    return model([op("Loop", "n - x", body=body)], [info("x", [2, 3]), info("n", [], TensorProto.INT64)])


def changed(proto: onnx.ModelProto, change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    change(proto)
    return proto


X, D = info("x", [2, 3]), TensorProto.DOUBLE
CASES: dict[str, tuple[onnx.ModelProto, str]] = {
    "a cycle": (model([op("Add", "x b", "a"), op("Relu", "a", "b"), op("Relu", "b")]), "E0105"),
    "a node that reads itself": (model([op("Add", "x y")]), "E0105"),
    "two inputs of one name": (model([op("Relu", "x")], [X, X]), "E0105 .x.: two inputs"),
    "one value of two nodes": (model([op("Relu", "x"), op("Neg", "x")]), "E0105 .node.: it defines 'y'"),
    "a node that defines an input": (model([op("Relu", "x", "x"), op("Neg", "x")]), "E0105 .node.: it defines 'x'"),
    "one value twice": (
        model([op("Split", "x", "y y", axis=1)], imports=[helper.make_opsetid("", 11)]),
        "E0105 .node.: it defines 'y'",
    ),
    "constants of one name and two shapes": (twice(W, W[0]), "E0105 .w.: two constants"),
    "constants of one name and two types": (twice(W, W.astype(np.float64)), "E0105 .w.: two constants"),
    "a constant unlike the input it is for": (
        model([op("Add", "x w")], [X, info("w", [3, 3])], w=W),
        "E0105 .w.: declared as an input of sizes",
    ),
    "a constant of another rank": (
        model([op("Add", "x w")], [X, info("w", [3])], w=W),
        "E0105 .w.: declared as an input of sizes",
    ),
    "a constant of another type": (
        model([op("Add", "x w")], [X, info("w", [2, 3], D)], w=W),
        "E0105 .w.: declared as an input of DOUBLE",
    ),
    "an input left out": (model([op("Add", "x -")]), "E0105 .node.: .*input 1"),
    "an input of a list left out": (
        model([op("Concat", "x - x", axis=0)]),
        "E0105 .node.: one of its inputs is missing",
    ),
    "a size left out of a list": (
        model([op("Shape", "x", "s"), op("Concat", "s -", axis=0)]),
        "E0105 .node.: one of its inputs is missing",
    ),
    "an input that no memory holds": (
        model([op("Relu", "x")], [info("x", [2**62])]),
        "E0405 .x.: a tensor of 4611686018427387904 elements",
    ),
    "a result that no memory holds": (
        model([op("Pad", "x p")], p=np.array([0, 2**46, 0, 2**46])),
        "E0405 .node.: a tensor of 2x140737488355331 elements",
    ),
    "no such value": (model([op("Add", "x q")]), "E0105 .node.: nothing defines 'q'"),
    "an output that nothing defines": (model([op("Relu", "x", "z")]), "E0105 .y."),
    "a missing attribute": (model([op("Concat", "x x")]), "E0105 .node.*axis"),
    "an unknown attribute": (model([op("Relu", "x", foo=3)]), "E0105 .node.*foo"),
    "a perm that is none": (model([op("Transpose", "x", perm=[0, 0])]), "E0107 .node.: perm"),
    "a perm that is too short": (model([op("Transpose", "x", perm=[0])]), "E0107 .node.: perm"),
    "two free sizes in a shape": (model([op("Reshape", "x s")], s=np.array([-1, -1])), "E0107 .node.: the shape"),
    "an unknown domain": (model([op("Relu", "x", domain="foo")]), "E0103 .node.: operator foo.Relu"),
    "operator set 0": (
        model([op("Relu", "x")], imports=[helper.make_opsetid("", 0)]),
        "E0105.*operator set 0 of ai.onnx",
    ),
    "an operator set of the future": (
        model([op("Relu", "x")], imports=[helper.make_opsetid("", 99)]),
        "E0105.*operator set 99 of ai.onnx",
    ),
    "a format of the future": (model([op("Relu", "x")], ir_version=99), "E0105.*IR version 99"),
    "mixed types": (
        model([op("Add", "x w")], w=W.astype(np.float64)),
        "E0105 .node.: input 1 .B. is float64, another one float32",
    ),
    "a type that the operator does not take": (model([op("Relu", "w")], w=W > 0), "E0105 .node.: input 0 .X. is bool"),
    "an output declared in another type": (
        model([op("Relu", "x")], outputs=[info("y", [2, 3], D)]),
        "E0105 .node.: 'y' is declared double",
    ),
    "a ConstantOfShape of two values": (
        model([op("Shape", "x", "s"), op("ConstantOfShape", "s", value=numpy_helper.from_array(W[0, :2]))]),
        "E0105 .node.: the value of a ConstantOfShape",
    ),
    "a Constant without a value": (
        model([op("Constant", "", "w"), op("Add", "x w")]),
        "E0105 .node.: a Constant has one value",
    ),
    "a function that calls itself": (
        calling(function("f", op("f", "a", "b", domain="d"))),
        "E0105 .f.: the function calls itself",
    ),
    "functions that call each other": (
        calling(function("f", op("g", "a", "b", domain="d")), function("g", op("f", "a", "b", domain="d"))),
        "E0105 .[fg].: the function calls itself through [fg]",
    ),
    "a function with too many inputs": (
        calling(function("f", op("Relu", "a", "b")), given="x x"),
        "E0105 .node.: 2 inputs for function f",
    ),
    "two functions of one name": (calling(*[function("f", op("Relu", "a", "b"))] * 2), "E0105 .f.: two functions"),
    "a function without operator sets": (
        calling(function("f", op("Relu", "a", "b"), imports=[])),
        "E0105 .node.: function f imports no",
    ),
    "an undefined value in a function": (calling(function("f", op("Add", "a q", "b"))), "E0105 .node.*'q'"),
    "a branch that hides an outer value": (
        choosing(inner("Relu", "x", "a"), op("Abs", "x", "a", "outer")),
        "E0105 .inner.: it defines 'a'",
    ),
    "an unknown operator in a loop": (looping(op("Frob", "s", "t", "inner")), "E0103 .node.: operator Frob"),
    "an attribute missing in a branch": (choosing(inner("Concat", "x x")), "E0105 .inner.*axis"),
    "a branch missing": (
        changed(choosing(inner("Abs", "x")), lambda proto: proto.graph.node[0].attribute.pop()),
        "E0105 .node.*_branch",
    ),
    "branches of different counts": (
        changed(choosing(inner("Abs", "x")), lambda proto: proto.graph.node[0].attribute[0].g.output.append(info("t"))),
        "E0105 .node.: branches of [12] and [12] outputs",
    ),
    "a condition that is no bool": (
        choosing(inner("Abs", "x"), condition="x"),
        "E0105 .node.: input 0 .cond. is float32",
    ),
    "scales for other channels": (
        model([op("BatchNormalization", "x s s s s")], s=W[0, :1]),
        r"E0107 .node.: scale has sizes \[1\]",
    ),
    "scales of two dimensions": (
        model([op("BatchNormalization", "x s s s s")], s=W[:1]),
        r"E0107 .node.: scale has sizes \[1, 3\]",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_by_name(name: str):
    proto, wanted = CASES[name]
    with pytest.raises(FuselineError, match=wanted):
        fuseline.compile(proto, target="null")


def test_names_of_later_values_may_appear_inside():
    """What a branch defines stands before the outer node of that name; and nodes may stand before what their branches
    read."""
    proto = choosing(inner("Relu", "late"))
    proto.graph.node.append(op("Abs", "x", "late", "outer"))
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    found = fuseline.compile(proto, threads=1).run({"x": x, "k": np.array(True)})
    np.testing.assert_array_equal(found["y"], np.abs(x))


def test_a_loop_may_call_a_result_as_its_body_does():
    body = helper.make_graph(
        [op("Relu", "s", "y", "inner"), op("Identity", "c", "go", "again")],
        "body",
        [info("i", [], TensorProto.INT64), info("c", [], TensorProto.BOOL), info("s", [2, 3])],
        [info("go", [], TensorProto.BOOL), info("y", [2, 3])],
    )
    proto = model([op("Loop", "n - x", body=body)], [info("x", [2, 3]), info("n", [], TensorProto.INT64)])
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    np.testing.assert_array_equal(
        fuseline.compile(proto, threads=1).run({"x": x, "n": np.array(2)})["y"], np.maximum(x, 0)
    )


def test_a_constant_that_is_said_twice_is_one():
    """So are weights of models that were put together from parts; onnxruntime takes them."""
    constants = [op("Constant", "", "w", f"constant_{i}", value=numpy_helper.from_array(W)) for i in range(2)]
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    found = fuseline.compile(model([*constants, op("Add", "x w")]), threads=1)(x)
    np.testing.assert_array_equal(found, x + W)
    constants[1].attribute[0].t.CopyFrom(numpy_helper.from_array(W + 1))
    with pytest.raises(FuselineError, match="E0105 .constant_1.: it defines 'w'"):
        fuseline.compile(model([*constants, op("Add", "x w")]), target="null")


def test_a_reference_to_an_attribute_that_the_caller_lacks_is_its_default():
    body = op("Softmax", "a", "b")
    body.attribute.append(AttributeProto(name="axis", type=AttributeProto.INT, ref_attr_name="ax"))
    proto = calling(function("f", body))
    proto.functions[0].attribute.append("ax")
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    found = fuseline.compile(proto, threads=1)(x)
    np.testing.assert_allclose(np.asarray(found).sum(-1), 1, rtol=1e-6)
