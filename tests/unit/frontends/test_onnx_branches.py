"""An `If` whose branches cannot be merged: each is compiled, and only the one chosen runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.errors import FuselineError
from fuseline.frontends.onnx.branches import branches_of
from tests.graphs.onnx_text import initializers, onnx_model

Array = NDArray[Any]


def weights(name: str, *shape: int) -> str:
    return initializers(**{name: np.random.default_rng(len(name)).standard_normal(shape).astype(np.float32)})


def branch(name: str, nodes: str, held: str = "") -> str:
    """A graph that answers `<name>_y`."""
    return f"{name} () => (float[] {name}_y) {held} {{ {nodes} }}"


def model(then: str, otherwise: str, imports: dict[str, int] | None = None) -> onnx.ModelProto:
    """`-If(k > 0)` with both branches reading `hidden = relu(x)`."""
    nodes = (
        "hidden = Relu(x)  positive = Greater(k, zero)"
        f"  [choose] chosen = If<then_branch = {then}, else_branch = {otherwise}>(positive)  y = Neg(chosen)"
    )
    return onnx_model(f"(float[n, 8] x, int64 k) => (float[] y) {{ {nodes} }}", imports=imports, zero=0)


def wide(name: str) -> str:
    return branch(name, f"w = MatMul(hidden, wide)  {name}_y = Relu(w)", weights("wide", 8, 16))


def narrow(name: str) -> str:
    return branch(name, f"s = MatMul(hidden, slim)  {name}_y = Softmax(s)", weights("slim", 8, 3))


def untouched(name: str) -> str:
    return branch(name, f"{name}_y = Identity(hidden)")


def nested(name: str) -> str:
    inner = f"[inner] {name}_y = If<then_branch = {wide('in_then')}, else_branch = {narrow('in_else')}>(big)"
    return branch(name, f"big = Greater(k, limit)  {inner}", "<int64 limit = {5}>")


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
    nodes = "hidden_t = Transpose<perm = [1, 0]>(hidden)  square = MatMul(hidden_t, hidden)"
    odd = branch("then", f"{nodes}  d = Det(square)  then_y = Expand(d, to)", "<int64[2] to = {2, 2}>")
    record = fuseline.compile(model(odd, narrow("else")), threads=1).record
    assert sorted(host.op_type for host in record.host_ops) == ["Det", "If"]


def unknown(name: str) -> str:
    return branch(name, f"{name}_y = elsewhere.NoSuchOperator(hidden)")


def with_unknown(then: str, otherwise: str) -> onnx.ModelProto:
    return model(then, otherwise, {"": 18, "elsewhere": 1})


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
    host = onnx_model('(float[3, 3] "@i0") => (float[] "@o0") { "@o0" = Det("@i0") }')
    assert branches_of(host.SerializeToString()) is None
