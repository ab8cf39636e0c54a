"""An `If` over sizes of which only one way makes sense of the rest: the program requires the sizes that go with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import fuseline
from fuseline.errors import FuselineError

from .test_onnx_operators import Array

HIDDEN, FEATURES = 6, 5
RNG = np.random.default_rng(11)
TARGETS = pytest.mark.parametrize("target", ["cpu", "interpreter"])


def graph(
    nodes: list[onnx.NodeProto], inputs: dict[str, tuple[Any, ...]], constants: dict[str, Array]
) -> onnx.ModelProto:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in inputs.items()]
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    made = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name="y")], tensors)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def inner(name: str, node: onnx.NodeProto) -> onnx.GraphProto:
    return helper.make_graph([node], name, [], [onnx.ValueInfoProto(name=node.output[0])])


def squeezed_if(test: list[onnx.NodeProto], *, squeeze_first: bool = True) -> list[onnx.NodeProto]:
    """`x`, without its last axis where `test` says so, in front of an LSTM: only an x of three dimensions fits."""
    squeeze = inner("squeeze", helper.make_node("Squeeze", ["x", "last"], ["s"]))
    keep = inner("keep", helper.make_node("Identity", ["x"], ["k"]))
    then, otherwise = (squeeze, keep) if squeeze_first else (keep, squeeze)
    return [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "last"], ["size"]),
        *test,
        helper.make_node("If", ["asked"], ["chosen"], name="choose", then_branch=then, else_branch=otherwise),
        helper.make_node("LSTM", ["chosen", "w", "r"], ["y"], hidden_size=HIDDEN),
    ]


CONSTANTS = {
    "last": np.array([-1]),
    "one": np.array([1]),
    "two": np.array([2]),
    "w": RNG.standard_normal((1, 4 * HIDDEN, FEATURES)).astype(np.float32),
    "r": RNG.standard_normal((1, 4 * HIDDEN, HIDDEN)).astype(np.float32),
}
TESTS = {
    "equal": (squeezed_if([helper.make_node("Equal", ["size", "one"], ["asked"])]), 2),
    "less": (squeezed_if([helper.make_node("Less", ["size", "two"], ["asked"])]), 2),
    "at most, cast": (
        squeezed_if(
            [helper.make_node("LessOrEqual", ["size", "one"], ["b"]), helper.make_node("Cast", ["b"], ["asked"], to=9)]
        ),
        2,
    ),
    "not greater": (squeezed_if([helper.make_node("Greater", ["size", "one"], ["asked"])], squeeze_first=False), 2),
    "not at least": (
        squeezed_if([helper.make_node("GreaterOrEqual", ["size", "two"], ["asked"])], squeeze_first=False),
        2,
    ),
    "not not equal": (
        squeezed_if(
            [helper.make_node("Equal", ["size", "one"], ["e"]), helper.make_node("Not", ["e"], ["asked"])],
            squeeze_first=False,
        ),
        2,
    ),
}


@TARGETS
@pytest.mark.parametrize("name", TESTS)
def test_the_way_that_makes_sense_is_taken_and_required(name: str, target: str):
    nodes, refused = TESTS[name]
    model = graph(nodes, {"x": ("steps", "batch", FEATURES, "n")}, CONSTANTS)
    program = fuseline.compile(model, threads=1, target=target)
    assert not program.record.host_ops
    peer = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = RNG.standard_normal((4, 3, FEATURES, 1)).astype(np.float32)
    expected: Any = peer.run(None, {"x": x})[0]
    np.testing.assert_allclose(program.run({"x": x})["y"], expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(FuselineError) as error:
        program.run({"x": np.repeat(x, refused, axis=3)})
    assert error.value.code == "E0203" and error.value.node == "choose"


def test_where_both_ways_make_sense_neither_is_required():
    nodes = [
        *squeezed_if([helper.make_node("Equal", ["size", "one"], ["asked"])])[:-1],
        helper.make_node("Tanh", ["chosen"], ["y"]),
    ]
    program = fuseline.compile(graph(nodes, {"x": (2, "n")}, CONSTANTS), threads=1)
    for size in (1, 3):
        x = RNG.standard_normal((2, size)).astype(np.float32)
        np.testing.assert_allclose(program.run({"x": x})["y"], np.tanh(x[:, 0] if size == 1 else x), rtol=1e-5)


def test_a_way_that_no_requirement_can_say_is_not_taken():
    """The size must differ from 1: both branches stay."""
    nodes = squeezed_if([helper.make_node("Equal", ["size", "one"], ["asked"])])[:-1]
    program = fuseline.compile(
        graph(
            [*nodes, helper.make_node("DepthToSpace", ["chosen"], ["y"], blocksize=1)], {"x": (1, 4, 2, "n")}, CONSTANTS
        ),
        threads=1,
    )
    x = RNG.standard_normal((1, 4, 2, 3)).astype(np.float32)
    np.testing.assert_array_equal(program.run({"x": x})["y"], x)


def test_a_model_without_any_way_is_refused():
    nodes = squeezed_if([helper.make_node("Equal", ["one", "one"], ["asked"])])
    with pytest.raises(FuselineError, match="input 0 of LSTM has 4 dimensions, must have 3") as error:
        fuseline.compile(graph(nodes, {"x": (4, 3, 2, 7, 1)}, CONSTANTS), threads=1)
    assert error.value.code == "E0107" and error.value.node == "LSTM_4"


@TARGETS
def test_squeezing_a_size_requires_it_to_be_one(target: str):
    program = fuseline.compile(
        graph([helper.make_node("Squeeze", ["x", "last"], ["y"])], {"x": (3, "n")}, CONSTANTS), threads=1, target=target
    )
    x = RNG.standard_normal((3, 1)).astype(np.float32)
    np.testing.assert_array_equal(program.run({"x": x})["y"], x[:, 0])
    with pytest.raises(FuselineError, match="must be equal") as error:
        program.run({"x": np.repeat(x, 2, axis=1)})
    assert error.value.code == "E0203"


def test_squeezing_another_size_is_refused():
    with pytest.raises(FuselineError, match="axis 1 has size 4") as error:
        fuseline.compile(
            graph([helper.make_node("Squeeze", ["x", "last"], ["y"], name="squeeze")], {"x": (3, 4)}, CONSTANTS),
            threads=1,
        )
    assert error.value.code == "E0107" and error.value.node == "squeeze"


@TARGETS
@pytest.mark.parametrize("batches", [("a", "b"), (3, "b"), ("a", 3)])
def test_first_states_have_the_batch_of_the_input(batches: tuple[Any, Any], target: str):
    node = helper.make_node("LSTM", ["x", "w", "r", "", "", "h"], ["y"], hidden_size=HIDDEN, name="lstm")
    model = graph([node], {"x": ("steps", batches[0], FEATURES), "h": (1, batches[1], HIDDEN)}, CONSTANTS)
    program = fuseline.compile(model, threads=1, target=target)
    assert not program.record.host_ops
    peer = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {
        "x": RNG.standard_normal((5, 3, FEATURES)).astype(np.float32),
        "h": RNG.standard_normal((1, 3, HIDDEN)).astype(np.float32),
    }
    expected: Any = peer.run(None, feeds)[0]
    np.testing.assert_allclose(program.run(feeds)["y"], expected, rtol=1e-5, atol=1e-6)
    name = "h" if batches[0] == 3 else "x"
    with pytest.raises(FuselineError) as error:
        program.run({**feeds, name: np.concatenate([feeds[name]] * 2, axis=1)})
    assert error.value.code == "E0203"
