"""Rules of a graph that are checked before it is read, one at a time; whole models are in tests/errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.check_graphs import check_graphs

OPSETS = {"": 18, "ai.onnx.ml": 3}
F = TensorProto.FLOAT


def _op(op_type: str, inputs: str, outputs: str, name: str = "", **attributes: Any) -> onnx.NodeProto:
    """A node; `-` stands for an empty name."""
    positions = [["" if word == "-" else word for word in text.split()] for text in (inputs, outputs)]
    return helper.make_node(op_type, *positions, name=name, **attributes)


def _graph(
    *nodes: onnx.NodeProto, inputs: Sequence[onnx.ValueInfoProto] = (), held: Sequence[TensorProto] = ()
) -> onnx.GraphProto:
    return helper.make_graph(list(nodes), "g", list(inputs), [], list(held))


def _check(*nodes: onnx.NodeProto, functions: Sequence[onnx.FunctionProto] = (), **parts: Any) -> None:
    model = helper.make_model(_graph(*nodes, **parts), functions=list(functions), ir_version=9)
    check_graphs(model, OPSETS)


def _refused(words: str, node: str, *nodes: onnx.NodeProto, **parts: Any) -> None:
    with pytest.raises(FuselineError, match=words) as caught:
        _check(*nodes, **parts)
    assert (caught.value.code, caught.value.node) == ("E0105", node)


def _info(name: str, dims: Sequence[int | str] | None = None, kind: int = F) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, dims)


def _function(name: str, *nodes: onnx.NodeProto, domain: str = "d", opset: int = 18) -> onnx.FunctionProto:
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("d", 1)] if opset else []
    return helper.make_function(domain, name, ["a"], ["b"], list(nodes), imports)


def test_a_graph_in_order() -> None:
    inner = _graph(_op("Neg", "x", "t"))
    choice = _op("If", "c", "y", then_branch=inner, else_branch=inner)  # branches may use the same names
    _check(_op("Relu", "x", "h"), choice, _op("Concat", "h h", "z", axis=0), inputs=[_info("x"), _info("c")])


@pytest.mark.parametrize(
    ("nodes", "words", "node"),
    [
        ([_op("Relu", "x", "x", "r")], "defines 'x', which an input or constant defines already", "r"),
        ([_op("Relu", "x", "w", "r")], "defines 'w', which an input or constant", "r"),
        ([_op("Relu", "x", "y", "r"), _op("Neg", "x", "y")], "defines 'y', which r defines already", "Neg_1"),
        ([_op("Split", "x", "y y", "s", axis=0)], "defines 'y', which s defines already", "s"),
        ([_op("Relu", "x x", "y", "r")], "input size 2 not in range", "r"),
        ([_op("Relu", "-", "y", "r")], "input 0", "r"),
        ([_op("Concat", "x", "y", "c")], "Required attribute 'axis'", "c"),
        ([_op("Relu", "x", "y", "r", alpha=1)], "Unrecognized attribute: alpha", "r"),
        ([_op("Concat", "x - x", "y", "c", axis=0)], "one of its inputs is missing", "c"),
        ([_op("Constant", "", "y", "k")], "this one has 0", "k"),
        ([_op("Constant", "", "y", "k", value_int=1, value_float=2.0)], "this one has 2|Only one", "k"),
        (
            [_op("ConstantOfShape", "x", "y", "k", value=numpy_helper.from_array(np.ones(2, np.float32)))],
            "the value of a ConstantOfShape has one element",
            "k",
        ),
    ],
)
def test_a_node_that_is_refused(nodes: list[onnx.NodeProto], words: str, node: str) -> None:
    held = [numpy_helper.from_array(np.ones(2, np.float32), "w")]
    _refused(words, node, *nodes, inputs=[_info("x")], held=held)


def test_outputs_that_are_left_out_have_no_name() -> None:
    _check(_op("Dropout", "x", "y -"), _op("Dropout", "x", "z -"), inputs=[_info("x")])


def test_operators_that_nobody_knows_are_left_alone() -> None:
    _check(_op("NoSuch", "", "y"), _op("Relu", "x x x", "z", domain="com.example"))
    _refused("input size 2 not in range", "s", _op("Scaler", "x x", "y", "s", domain="ai.onnx.ml"))


def test_the_standard_domain_may_be_spelled_out() -> None:
    _check(_op("Relu", "x", "y", domain="ai.onnx"))
    _refused("input size 2 not in range", "r", _op("Relu", "x x", "y", "r", domain="ai.onnx"))


def test_values_of_branches() -> None:
    hiding = _graph(_op("Neg", "x", "y", "n"))
    choice = _op("If", "c", "z", "if", then_branch=hiding, else_branch=_graph(_op("Abs", "x", "t")))
    _check(choice, _op("Relu", "x", "y"))  # what stands later outside is another value
    _refused("defines 'y', which a graph around it defines already", "n", _op("Relu", "x", "y"), choice)
    _refused("which a graph around it", "n", choice, inputs=[_info("y")])


def test_inputs_of_branches() -> None:
    body = _graph(inputs=[_info("i"), _info("i")])
    _refused("two inputs are called 'i'", "loop", _op("Loop", "m c", "y", "loop", body=body))
    _refused("two inputs are called 'x'", "x", inputs=[_info("x"), _info("x")])


def test_a_reference_in_a_constant_is_followed_by_nobody() -> None:
    """The node checker would look for the file."""
    beside = TensorProto(name="t", data_type=F, dims=[3], data_location=TensorProto.EXTERNAL)
    beside.external_data.add(key="location", value="none.bin")
    _check(_op("Constant", "", "y", value=beside))


def _held(*arrays: Any) -> list[TensorProto]:
    return [numpy_helper.from_array(np.asarray(array), "w") for array in arrays]


@pytest.mark.parametrize("dims", [None, [2, 3], ["n", 3], ["n", "m"], [-1, 3]])
def test_a_default_as_its_input_is_declared(dims: list[int | str] | None) -> None:
    _check(inputs=[_info("w", dims)], held=_held(np.ones((2, 3), np.float32)))
    _check(inputs=[_info("w", dims, 0)], held=_held(np.ones((2, 3))))  # of any type


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (_info("w", [2, 3], TensorProto.INT8), "declared as an input of INT8, but its constant is FLOAT"),
        (_info("w", [2]), r"declared as an input of sizes \[2\], but its constant has \[2, 3\]"),
        (_info("w", [2, 4]), r"sizes \[2, 4\]"),
        (_info("w", ["n", 2]), r"sizes \[None, 2\]"),
        (_info("w", []), r"sizes \[\]"),
    ],
)
def test_a_default_unlike_its_input(info: onnx.ValueInfoProto, words: str) -> None:
    _refused(words, "w", inputs=[info], held=_held(np.ones((2, 3), np.float32)))


def test_constants_of_one_name() -> None:
    ones = np.ones((2, 3), np.float32)
    _check(held=_held(ones, ones))
    for other in (ones[0], ones.astype(np.float16), ones.T):
        _refused("two constants of other sizes or types", "w", held=_held(ones, other))


def test_functions_that_end() -> None:
    both = [_function("f", _op("g", "a", "b", domain="d")), _function("g", _op("Relu", "a", "b"))]
    _check(functions=both)
    _check(functions=both[::-1])
    _check(functions=[_function("f", _op("f", "a", "b", domain="other"))])  # another f
    _check(functions=[_function("f", _op("g", "a", "t", domain="d"), _op("g", "t", "b", domain="d")), both[1]])


@pytest.mark.parametrize("length", [1, 2, 3000])
def test_functions_that_call_themselves(length: int) -> None:
    calls = [_function(f"f{i}", _op(f"f{(i + 1) % length}", "a", "b", domain="d")) for i in range(length)]
    with pytest.raises(FuselineError, match="the function calls itself") as caught:
        _check(functions=calls)
    assert ("through" in caught.value.message) == (length > 1)
    del calls[length - 1]
    _check(functions=calls)


def test_a_function_that_calls_itself_from_a_branch() -> None:
    inner = _graph(_op("f", "a", "t", domain="d"))
    choice = _op("If", "c", "b", then_branch=inner, else_branch=_graph(_op("Neg", "a", "t")))
    _refused("calls itself", "f", functions=[_function("f", choice)])


def test_two_functions_of_one_name() -> None:
    _refused("two functions of domain 'd'", "f", functions=[_function("f", _op("Relu", "a", "b"))] * 2)
    _check(functions=[_function("f", _op("Relu", "a", "b"), domain=domain) for domain in ("d", "e")])


def test_nodes_of_functions_are_checked_by_their_own_operator_sets() -> None:
    squeeze = _op("Squeeze", "a", "b", "s", axes=[0])  # an attribute up to version 11
    _check(functions=[_function("f", squeeze, opset=11)])
    _refused("Unrecognized attribute: axes", "s", functions=[_function("f", squeeze)])
    _refused(
        "function f imports no operator set of domain 'ai.onnx'", "s", functions=[_function("f", squeeze, opset=0)]
    )
    _refused("defines 'a', which an input", "r", functions=[_function("f", _op("Relu", "a", "a", "r"))])
