"""Dispatches are called by what they do, with the sizes of what they make; `stats` counts what moves data inside."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from xdsl.ir import Operation, SSAValue

import fuseline
from fuseline.cli.main import main
from fuseline.dispatch.naming import shape_label, what_it_does
from fuseline.report.records import CompileRecord
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.graphs.program import Program


def _record(nodes: str, inputs: str, output: str, weights: dict[str, tuple[int, ...]] | None = None) -> CompileRecord:
    held = {name: RNG.standard_normal(shape).astype(np.float32) for name, shape in (weights or {}).items()}
    return fuseline.compile(onnx_model(f"({inputs}) => ({output}) {{ {nodes} }}", held), target="null").record


def _sizes() -> tuple[int, int, int]:
    a, b, c = (int(size) for size in RNG.choice(np.arange(3, 40), 3, replace=False))
    return a, b, c


@pytest.mark.parametrize(
    ("nodes", "inputs", "shape", "does"),
    [
        ("z = Transpose<perm = [1, 0, 2]>(x)", "float[{a}, {b}, {c}] x", "{b}x{a}x{c}", "transpose"),
        ("z = Concat<axis = 1>(x, y)", "float[{a}, {b}] x, float[{a}, {c}] y", "{a}x{bc}", "concat"),
        ("z = Gather(x, i)", "float[{a}, {b}] x, int64[{c}] i", "{c}x{b}", "gather"),
        ("g = Gather(x, i) z = Exp(g)", "float[{a}, {b}] x, int64[{c}] i", "{c}x{b}", "gather"),
        ("t = Transpose<perm = [1, 0]>(x) z = Exp(t)", "float[{a}, {b}] x", "{b}x{a}", "elementwise"),
        ("z = MatMul(x, y)", "float[{a}, {b}] x, float[{b}, {c}] y", "{a}x{c}", "contraction"),
        ("g = Gather(x, i) z = MatMul(g, y)", "float[9, {b}] x, int64[{c}] i, float[{b}, 2] y", "{c}x2", "contraction"),
        ("e = Exp(x) z = ReduceSum<keepdims = 0>(e, axes)", "float[{a}, {b}] x", "{a}", "reduction"),
        ("z = CumSum(x, last)", "float[{a}, {b}] x", "{a}x{b}", "scan"),
    ],
)
def test_the_name_says_what_is_done_and_of_what_size(nodes: str, inputs: str, shape: str, does: str):
    a, b, c = _sizes()
    sizes = {"a": a, "b": b, "c": c, "bc": b + c}
    extra = "axes = Constant<value_ints = [1]>() last = Constant<value_int = 1>() "
    shape = shape.format(**sizes)
    record = _record(extra + nodes, inputs.format(**sizes), f"float[{shape.replace('x', ',')}] z")
    (dispatch,) = record.dispatches
    assert (dispatch.name, dispatch.label) == (f"000_{does}", f"000_{does}_{shape}_f32")
    assert dispatch.executable.endswith(f"_{'reduction' if does == 'scan' else does}")


def test_sizes_that_only_the_run_tells():
    record = _record("z = Exp(x)", "float[n, 5] x", "float[n, 5] z")
    assert record.dispatches[0].label == "000_elementwise_Dx5_f32"


def test_what_moves_data_inside_is_counted():
    a, b, c = _sizes()
    inputs = f"float[{a}, {b}] x, int64[{c}] i, float[{b}, 4] y"
    nodes = "g = Gather(x, i) p = MatMul(g, y) z = Transpose<perm = [1, 0]>(p)"
    stats = _record(nodes, inputs, f"float[4, {c}] z").statistics
    assert stats["inside"]["gathers"] == 1 and stats["gathers"] == stats["standalone_transposes"] == 0
    alone = _record("z = Gather(x, i)", inputs, f"float[{c}, {b}] z").statistics
    assert alone["gathers"] == 1 and alone["inside"] == {"fills": 0, "copies": 0, "transposes": 0, "gathers": 0}
    convolution = "z = Conv<pads = [1, 1, 1, 1]>(v, w)"
    padded = _record(convolution, "float[1, 3, 9, 9] v", "float[1, 4, 9, 9] z", {"w": (4, 3, 3, 3)})
    assert padded.statistics["inside"]["copies"] == 1 and padded.statistics["copies"] == 0


def test_lists_have_the_sizes_and_commands_take_both_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    onnx.save(onnx_model("(float[3, 5] x) => (float[5, 3] z) { z = Transpose<perm = [1, 0]>(x) }"), tmp_path / "m.onnx")
    model = str(tmp_path / "m.onnx")
    assert main(["stats", model, "--dispatches"]) == 0
    assert "000_transpose_5x3_f32" in capsys.readouterr().out
    for word in ("000_transpose", "000_transpose_5x3_f32", "0"):
        assert main(["explain", model, word]) == 0
        assert "000_transpose_5x3_f32" in capsys.readouterr().out
    assert main(["stats", model, "--dispatches", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["dispatch_table"]
    assert listed["shape"] == "5x3_f32"


def _values(made: Program) -> dict[str, SSAValue]:
    """What ops of several kinds make."""
    x, y = made.x
    return {
        "contraction": made.matmul(x, y),
        "elementwise": made.relu(x),
        "transpose": made.moved(x, [1, 0], 6, 4),
        "broadcast": made.moved(y, [1, 2], 3, 6, 5),
        "concat": made.concat(x, x),
        "slice": made.slice(x, [1, 1], [2, 3]),
        "pad": made.pad(x, [1, 1], [0, 0]),
        "reduction": made.reduce(x),
    }


@pytest.mark.parametrize(
    ("members", "root", "does"),
    [
        ([], None, "empty"),
        (["contraction", "elementwise"], "contraction", "contraction"),
        (["slice", "reduction", "elementwise"], "reduction", "reduction"),
        (["slice", "elementwise"], "slice", "elementwise"),
        (["slice", "pad", "transpose"], "slice", "transpose"),
        (["slice", "transpose", "concat"], "slice", "concat"),
        (["broadcast", "slice"], "broadcast", "slice"),
        (["broadcast", "pad", "slice"], None, "pad"),
        (["broadcast"], "broadcast", "broadcast"),
    ],
)
def test_the_kind_that_says_most_names_a_dispatch(members: list[str], root: str | None, does: str):
    values = _values(Program((4, 6), (6, 5)))
    ops = {name: op for name, value in values.items() if isinstance(op := value.owner, Operation)}
    for order in (members, members[::-1]):
        assert what_it_does([ops[name] for name in order], None if root is None else ops[root]) == does


@pytest.mark.parametrize(
    ("shape", "label"), [((3, 5), "3x5_f32"), ((), "f32"), (("n", 4, "n"), "Dx4xD_f32"), ((1,), "1_f32")]
)
def test_a_label_has_the_sizes_that_are_known(shape: tuple[int | str, ...], label: str):
    view = (made := Program(shape)).dispatch(made.x[0])
    assert shape_label(view.tensors[0], view.shapes) == label
