"""An `If` whose branches cannot be merged: each is compiled, and only the one chosen runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import fuseline
from fuseline.frontends.onnx.branches import branches_of

Array = NDArray[Any]


def value(name: str, dims: list[int | str] | None, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, dims)


def weights(name: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.random.default_rng(len(name)).standard_normal(shape).astype(np.float32), name)


def branch(name: str, nodes: list[onnx.NodeProto], *tensors: onnx.TensorProto) -> onnx.GraphProto:
    return helper.make_graph(nodes, name, [], [value(nodes[-1].output[0], None)], list(tensors))


def model(then: onnx.GraphProto, otherwise: onnx.GraphProto) -> onnx.ModelProto:
    """`-If(k > 0)` with both branches reading `hidden = relu(x)`."""
    nodes = [
        helper.make_node("Relu", ["x"], ["hidden"]),
        helper.make_node("Greater", ["k", "zero"], ["positive"]),
        helper.make_node("If", ["positive"], ["chosen"], name="choose", then_branch=then, else_branch=otherwise),
        helper.make_node("Neg", ["chosen"], ["y"]),
    ]
    inputs = [value("x", ["n", 8]), value("k", [], TensorProto.INT64)]
    graph = helper.make_graph(nodes, "g", inputs, [value("y", None)], [numpy_helper.from_array(np.array(0), "zero")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def wide(name: str) -> onnx.GraphProto:
    return branch(
        name, [helper.make_node("MatMul", ["hidden", "wide"], ["w"]), helper.make_node("Relu", ["w"], [f"{name}_y"])], weights("wide", 8, 16)
    )


def narrow(name: str) -> onnx.GraphProto:
    return branch(
        name, [helper.make_node("MatMul", ["hidden", "slim"], ["s"]), helper.make_node("Softmax", ["s"], [f"{name}_y"])], weights("slim", 8, 3)
    )


def untouched(name: str) -> onnx.GraphProto:
    return branch(name, [helper.make_node("Identity", ["hidden"], [f"{name}_y"])])


def nested(name: str) -> onnx.GraphProto:
    inner = helper.make_node("If", ["big"], [f"{name}_y"], name="inner", then_branch=wide("in_then"), else_branch=narrow("in_else"))
    return branch(name, [helper.make_node("Greater", ["k", "limit"], ["big"]), inner], numpy_helper.from_array(np.array(5), "limit"))


CASES = {"both compute": (wide, narrow), "one answers what it was given": (untouched, narrow), "one inside another": (nested, untouched)}


@pytest.mark.parametrize("name", CASES)
def test_only_the_chosen_branch_runs(name: str, tmp_path: Path):
    proto = model(CASES[name][0]("then"), CASES[name][1]("else"))
    fuseline.compile(proto, threads=2).save(tmp_path / "chosen.fuse")
    program, oracle = fuseline.load(tmp_path / "chosen.fuse"), fuseline.compile(proto, target="interpreter")
    peer = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(2)
    for rows, k in ((3, 1), (5, -1), (3, 9), (1, -2)):
        feeds: dict[str, Array] = {"x": rng.standard_normal((rows, 8)).astype(np.float32), "k": np.array(k)}
        expected: Any = peer.run(None, feeds)[0]
        for found in (program.run(feeds)["y"], oracle.run(feeds)["y"]):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_host_only_chooses():
    record = fuseline.compile(model(wide("then"), narrow("else")), threads=1).record
    assert [(host.node, host.op_type) for host in record.host_ops] == [("choose", "If")]
    assert record.statistics["host_ops"] == 1
    assert any("choose: the branches are programs of 1 and 1 dispatches" in note for note in record.notes)


def test_operators_on_the_host_inside_a_branch_are_counted():
    odd = branch("then", [helper.make_node("Det", ["square"], ["d"]), helper.make_node("Expand", ["d", "to"], ["then_y"])])
    odd.node.insert(0, helper.make_node("MatMul", ["hidden_t", "hidden"], ["square"]))
    odd.node.insert(0, helper.make_node("Transpose", ["hidden"], ["hidden_t"], perm=[1, 0]))
    odd.initializer.append(numpy_helper.from_array(np.array([2, 2]), "to"))
    record = fuseline.compile(model(odd, narrow("else")), threads=1).record
    assert sorted(host.op_type for host in record.host_ops) == ["Det", "If"]


def test_a_branch_that_cannot_be_compiled_leaves_the_operator_as_it_was():
    """Its result has no rank that anybody knows, so what reads it inside cannot be planned; the reference runs all of it."""
    unknown = branch("then", [helper.make_node("NoSuchOperator", ["hidden"], ["then_y"], domain="elsewhere")])
    proto = model(unknown, narrow("else"))
    proto.opset_import.append(helper.make_opsetid("elsewhere", 1))
    record = fuseline.compile(proto, threads=1).record
    assert {host.reason for host in record.host_ops} >= {"inside If"}


def test_other_host_operators_have_no_branches():
    node = helper.make_node("Det", ["@i0"], ["@o0"])
    graph = helper.make_graph([node], "host", [value("@i0", [3, 3])], [value("@o0", None)])
    assert branches_of(helper.make_model(graph).SerializeToString()) is None
