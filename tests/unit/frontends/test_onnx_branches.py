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
from fuseline.errors import FuselineError
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
        name,
        [helper.make_node("MatMul", ["hidden", "wide"], ["w"]), helper.make_node("Relu", ["w"], [f"{name}_y"])],
        weights("wide", 8, 16),
    )


def narrow(name: str) -> onnx.GraphProto:
    return branch(
        name,
        [helper.make_node("MatMul", ["hidden", "slim"], ["s"]), helper.make_node("Softmax", ["s"], [f"{name}_y"])],
        weights("slim", 8, 3),
    )


def untouched(name: str) -> onnx.GraphProto:
    return branch(name, [helper.make_node("Identity", ["hidden"], [f"{name}_y"])])


def nested(name: str) -> onnx.GraphProto:
    inner = helper.make_node(
        "If", ["big"], [f"{name}_y"], name="inner", then_branch=wide("in_then"), else_branch=narrow("in_else")
    )
    return branch(
        name,
        [helper.make_node("Greater", ["k", "limit"], ["big"]), inner],
        numpy_helper.from_array(np.array(5), "limit"),
    )


CASES = {
    "both compute": (wide, narrow),
    "one answers what it was given": (untouched, narrow),
    "one inside another": (nested, untouched),
}


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
    odd = branch(
        "then", [helper.make_node("Det", ["square"], ["d"]), helper.make_node("Expand", ["d", "to"], ["then_y"])]
    )
    odd.node.insert(0, helper.make_node("MatMul", ["hidden_t", "hidden"], ["square"]))
    odd.node.insert(0, helper.make_node("Transpose", ["hidden"], ["hidden_t"], perm=[1, 0]))
    odd.initializer.append(numpy_helper.from_array(np.array([2, 2]), "to"))
    record = fuseline.compile(model(odd, narrow("else")), threads=1).record
    assert sorted(host.op_type for host in record.host_ops) == ["Det", "If"]


def unknown(name: str) -> onnx.GraphProto:
    return branch(name, [helper.make_node("NoSuchOperator", ["hidden"], [f"{name}_y"], domain="elsewhere")])


def with_unknown(then: onnx.GraphProto, otherwise: onnx.GraphProto) -> onnx.ModelProto:
    proto = model(then, otherwise)
    proto.opset_import.append(helper.make_opsetid("elsewhere", 1))
    return proto


@pytest.mark.parametrize("bad", ["then", "else"])
def test_a_branch_that_no_run_can_take_raises_when_taken(bad: str, tmp_path: Path):
    sides = {side: (unknown if side == bad else narrow)(side) for side in ("then", "else")}
    fuseline.compile(with_unknown(sides["then"], sides["else"]), threads=1).save(tmp_path / "one.fuse")
    program = fuseline.load(tmp_path / "one.fuse")
    whole = ort.InferenceSession(
        model(narrow("then"), narrow("else")).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    x = np.random.default_rng(5).standard_normal((4, 8)).astype(np.float32)
    good, wrong = np.array(-1 if bad == "then" else 1), np.array(1 if bad == "then" else -1)
    with pytest.raises(FuselineError, match="NoSuchOperator") as error:
        program.run({"x": x, "k": wrong})
    assert error.value.code == "E0103" and error.value.node
    expected: Any = whole.run(None, {"x": x, "k": good})[0]
    np.testing.assert_allclose(program.run({"x": x, "k": good})["y"], expected, rtol=1e-5, atol=1e-6)
    assert [(host.node, host.op_type) for host in program.record.host_ops] == [("choose", "If")]
    assert any("no run can take the other one" in note for note in program.record.notes)


def test_with_two_such_branches_the_operator_stays_as_it_was():
    record = fuseline.compile(with_unknown(unknown("then"), unknown("else")), threads=1).record
    assert {host.reason for host in record.host_ops} >= {"inside If"}


def test_other_host_operators_have_no_branches():
    node = helper.make_node("Det", ["@i0"], ["@o0"])
    graph = helper.make_graph([node], "host", [value("@i0", [3, 3])], [value("@o0", None)])
    assert branches_of(helper.make_model(graph).SerializeToString()) is None
