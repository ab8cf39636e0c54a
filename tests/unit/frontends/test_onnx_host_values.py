"""Values that no tensor of the IR can be: they stay on the host, what is native around them stays native, and every
node is counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import fuseline
from fuseline.errors import FuselineError
from fuseline.frontends.onnx import read_onnx
from fuseline.ir.context import new_context

FLOAT, INT64, STRING, INT4 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.INT4
TARGETS = ("cpu", "interpreter")


def tensor(name: str, element: int, shape: Sequence[int | str | None] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto | str],
    weights: dict[str, Any] | None = None,
    **more: Any,
) -> onnx.ModelProto:
    results = [onnx.ValueInfoProto(name=out) if isinstance(out, str) else out for out in outputs]
    initializers = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(list(nodes), "g", list(inputs), results, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10, **more)


def hosts(program: fuseline.CompiledModel) -> list[tuple[str, str]]:
    return [(host.node, host.op_type) for host in program.record.host_ops]


def mixed() -> onnx.ModelProto:
    """Strings beside numbers; rows of a native result in a sequence, one of which is computed with natively again."""
    nodes = [
        helper.make_node("StringNormalizer", ["s"], ["t"], name="normalize", case_change_action="UPPER"),
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("SplitToSequence", ["r", "one"], ["q"], name="split", axis=0),
        helper.make_node("SequenceAt", ["q", "i"], ["a"], name="at"),
        helper.make_node("Add", ["a", "a"], ["b"], name="double"),
        helper.make_node("Exp", ["b"], ["e"], name="exp"),
    ]
    inputs = [tensor("s", STRING, ("n",)), tensor("x", FLOAT, ("n", 4)), tensor("i", INT64, ())]
    return model(nodes, inputs, ["t", "q", "e"], {"one": np.array(1)})


@pytest.mark.parametrize("target", TARGETS)
def test_only_what_must_be_runs_on_the_host(target: str, tmp_path: Any):
    program = fuseline.compile(mixed(), target=target, threads=1)
    assert hosts(program) == [("normalize", "StringNormalizer"), ("split", "SplitToSequence"), ("at", "SequenceAt")]
    assert program.stats["host_ops"] == 3 and program.stats["dispatches"] == 2
    if target == "cpu":
        program.save(tmp_path / "m.fuse")
        program = fuseline.load(tmp_path / "m.fuse")
    rng = np.random.default_rng(5)
    for count, index in ((3, 1), (7, 6), (3, 0)):
        words, x = [f"w{i}" for i in range(count)], rng.standard_normal((count, 4)).astype(np.float32)
        out = program.run({"s": np.array(words), "x": x, "i": np.array(index)})
        rows = np.maximum(x, 0)
        assert out["t"].tolist() == [word.upper() for word in words]
        assert len(out["q"]) == count
        np.testing.assert_array_equal(np.concatenate(out["q"]), rows)
        np.testing.assert_allclose(out["e"], np.exp(2 * rows[index : index + 1]), rtol=1e-6)


def test_borders_tell_types_and_check_feeds():
    program = fuseline.compile(mixed(), threads=1)
    first = program.inputs[0]
    assert (first.name, first.type, first.shape) == ("s", "tensor(string)", ("n",))
    assert [item.type for item in program.outputs] == ["tensor(string)", "seq(tensor(float32))", ""]
    feeds: dict[str, Any] = {"s": ["a"], "x": np.ones((1, 4), np.float32), "i": np.array(0)}
    for name, value, code in (
        ("s", np.ones(1), "E0204"),
        ("s", ["a", "b"], "E0203"),
        ("x", np.ones((2, 4), np.float32), "E0203"),
    ):
        with pytest.raises(FuselineError, match=code):
            program.run({**feeds, name: value})


def test_counts_without_code():
    assert fuseline.compile(mixed(), target="null").stats["host_ops"] == 3


def test_the_reason_is_told():
    program = fuseline.compile(mixed(), target="null")
    reasons = {host.node: host.reason for host in program.record.host_ops}
    assert reasons["normalize"] == "host-value: input 0 is tensor(string)"
    assert reasons["at"] == "host-value: input 0 is seq(tensor(float32))"
    assert not {"normalize", "split", "at"} & program.record.eliminated.keys()


def test_small_weights_are_widened_while_reading():
    """4-bit weights with a scale per column become one native constant; nothing is left for the host."""
    rng = np.random.default_rng(6)
    weights, scales = rng.integers(-8, 8, (16, 8)), rng.uniform(0.5, 2, 8).astype(np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "k"], ["d"], axis=1),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    proto = model(
        nodes,
        [tensor("x", FLOAT, (3, 16))],
        [tensor("y", FLOAT, (3, 8))],
        {"w": weights.astype(ml_dtypes.int4), "k": scales},
    )
    program = fuseline.compile(proto, threads=1)
    assert program.stats["host_ops"] == 0
    x = rng.standard_normal((3, 16)).astype(np.float32)
    np.testing.assert_allclose(program.run({"x": x})["y"], x @ (weights * scales), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", TARGETS)
def test_a_constant_that_is_an_output(target: str):
    words = np.array(["a", "bé"], object)
    nodes = [
        helper.make_node("Constant", [], ["c"], name="words", value=numpy_helper.from_array(words, "v")),
        helper.make_node("Relu", ["x"], ["y"]),
    ]
    program = fuseline.compile(
        model(nodes, [tensor("x", FLOAT, (2,))], [tensor("c", STRING, (2,)), "y", "w"], {"w": words}),
        target=target,
        threads=1,
    )
    out = program.run({"x": np.array([-1, 1], np.float32)})
    assert out["c"].tolist() == out["w"].tolist() == words.tolist()
    assert out["y"].tolist() == [0, 1]


@pytest.mark.parametrize("target", TARGETS)
def test_an_input_that_is_an_output(target: str):
    info = helper.make_value_info("q", helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, None)))
    program = fuseline.compile(model([], [info], [info]), target=target, threads=1)
    assert program.inputs[0].type == "optional(tensor(float32))" and program.stats["host_ops"] == 0
    assert program.run({"q": None}) == {"q": None}
    found = program.run({"q": np.ones(2, np.float32)})["q"]
    assert found.tolist() == [1, 1]


@pytest.mark.parametrize("target", TARGETS)
def test_an_unknown_rank_ends_where_a_rank_is_known_again(target: str):
    """What reads a tensor of unknown rank runs on the host; after a Reshape the program is native again."""
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["r"], name="to"),
        helper.make_node("Neg", ["r"], ["m"], name="neg"),
        helper.make_node("Reshape", ["m", "flat"], ["f"], name="back"),
        helper.make_node("Exp", ["f"], ["y"], name="exp"),
    ]
    shape = tensor("shape", INT64, ("rank",))
    program = fuseline.compile(
        model(nodes, [tensor("x", FLOAT, (6,)), shape], ["y", "m"], {"flat": np.array([-1])}), target=target, threads=1
    )
    assert hosts(program) == [("to", "Reshape"), ("neg", "Neg"), ("back", "Reshape")]
    assert program.outputs[1].type == "any_rank(tensor(float32))"
    x = np.random.default_rng(7).standard_normal(6).astype(np.float32)
    for wanted in ((2, 3), (6,), (1, 3, 2)):
        out = program.run({"x": x, "shape": np.array(wanted)})
        np.testing.assert_array_equal(out["m"], -x.reshape(wanted))
        np.testing.assert_allclose(out["y"], np.exp(-x), rtol=1e-6)


def test_an_input_of_unknown_rank_is_noted():
    proto = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", FLOAT, None)], ["y"])
    program = fuseline.compile(proto, threads=1)
    assert program.stats["host_ops"] == 1 and any("--shape" in note for note in program.record.notes)
    assert program.run({"x": np.array([[-1, 2]], np.float32)})["y"].tolist() == [[0, 2]]
    assert fuseline.compile(proto, threads=1, shapes={"x": (1, 2)}).stats["host_ops"] == 0


def test_a_host_op_keeps_the_sizes_it_is_given():
    ctx = new_context()
    read_onnx(
        model(
            [helper.make_node("Det", ["x"], ["d"]), helper.make_node("Exp", ["d"], ["y"])],
            [tensor("x", FLOAT, ("n", 3, 3))],
            ["y"],
        ),
        ctx,
    )
    assert set(ctx.symbols) == {"n"} and len(ctx.records.host_ops) == 1


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_with_a_length_that_is_fed_reads_what_is_around_it(target: str):
    """The body concatenates to its state, whose size grows, and calls a function of the model."""
    double = helper.make_function(
        "own", "Double", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 21)]
    )
    body = helper.make_graph(
        [
            helper.make_node("Double", ["x"], ["d"], domain="own"),
            helper.make_node("Concat", ["s", "d"], ["t"], axis=0),
            helper.make_node("Identity", ["on"], ["go"]),
        ],
        "body",
        [tensor("i", INT64, ()), tensor("on", TensorProto.BOOL, ()), tensor("s", FLOAT, ("k",))],
        [tensor("go", TensorProto.BOOL, ()), tensor("t", FLOAT, ("m",))],
    )
    nodes = [
        helper.make_node("Relu", ["z"], ["x"]),
        helper.make_node("Loop", ["m", "", "x"], ["l"], name="grow", body=body),
    ]
    proto = model(
        [*nodes, helper.make_node("Neg", ["l"], ["y"])],
        [tensor("z", FLOAT, (2,)), tensor("m", INT64, ())],
        [tensor("y", FLOAT, ("o",))],
    )
    proto.functions.append(double)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    program = fuseline.compile(proto, target=target, threads=1)
    assert hosts(program) == [("grow", "Loop"), ("grow", "Double"), ("grow", "Concat"), ("grow", "Identity")]
    z = np.array([-1, 3], np.float32)
    for trips in (0, 1, 4):
        assert program.run({"z": z, "m": np.array(trips)})["y"].tolist() == [0, -3, *[0, -6] * trips]


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_on_the_host_runs_only_where_it_is_taken(taken: bool):
    """Reading a sequence out of bounds fails; the branch that does it must not run."""
    shape = [onnx.ValueInfoProto(name="b")]
    bad = helper.make_graph([helper.make_node("SequenceAt", ["q", "five"], ["b"])], "bad", [], shape)
    good = helper.make_graph([helper.make_node("SequenceAt", ["q", "zero"], ["b"])], "good", [], shape)
    nodes = [
        helper.make_node("SequenceConstruct", ["x"], ["q"]),
        helper.make_node("If", ["c"], ["y"], name="if", then_branch=good, else_branch=bad),
    ]
    inputs = [tensor("x", FLOAT, (2,)), tensor("c", TensorProto.BOOL, ())]
    program = fuseline.compile(
        model(nodes, inputs, [tensor("y", FLOAT, (2,))], {"five": np.array(5), "zero": np.array(0)}), threads=1
    )
    feeds = {"x": np.array([1, 2], np.float32), "c": np.array(taken)}
    assert [op for _, op in hosts(program)] == ["SequenceConstruct", "If", "SequenceAt", "SequenceAt"]
    if taken:
        assert program.run(feeds)["y"].tolist() == [1, 2]
    else:
        with pytest.raises(FuselineError, match="E0106"):
            program.run(feeds)


def test_results_that_nothing_needs_are_not_counted():
    nodes = [helper.make_node("NonZero", ["x"], ["i"], name="unused"), helper.make_node("Relu", ["x"], ["y"])]
    program = fuseline.compile(model(nodes, [tensor("x", FLOAT, (3,))], ["y"]), threads=1)
    assert program.stats["host_ops"] == 0 and not program.record.host_ops


def test_unknown_operators_among_held_values_are_listed_at_once():
    nodes = [
        helper.make_node("NoSuchOp", ["s"], ["a"], name="first"),
        helper.make_node("StringNormalizer", ["s"], ["t"], name="fine"),
        helper.make_node("NorThis", ["t"], ["c"], name="second"),
    ]
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(model(nodes, [tensor("s", STRING, (2,))], ["a", "c"]))
    assert caught.value.code == "E0103"
    assert "first" in caught.value.message and "second" in caught.value.message and "fine" not in caught.value.message


def test_random_numbers_are_drawn_in_every_run():
    nodes = [helper.make_node("RandomNormal", [], ["r"], shape=[8]), helper.make_node("Add", ["x", "r"], ["y"])]
    program = fuseline.compile(model(nodes, [tensor("x", FLOAT, (8,))], ["y"]), threads=1)
    x = np.zeros(8, np.float32)
    assert not np.array_equal(program.run({"x": x})["y"], program.run({"x": x})["y"])


def test_names_around_a_loop_may_be_those_of_its_own_inputs():
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "i0"], ["o0"]), helper.make_node("Identity", ["on"], ["go"])],
        "body",
        [tensor("trip", INT64, ()), tensor("on", TensorProto.BOOL, ()), tensor("s", FLOAT, (2,))],
        [tensor("go", TensorProto.BOOL, ()), tensor("o0", FLOAT, (2,))],
    )
    inputs = [tensor("m", INT64, ()), tensor("x", FLOAT, (2,)), tensor("i0", FLOAT, (2,))]
    program = fuseline.compile(
        model([helper.make_node("Loop", ["m", "", "x"], ["y"], body=body)], inputs, [tensor("y", FLOAT, (2,))]),
        threads=1,
    )
    x, step = np.array([1, 2], np.float32), np.array([10, 20], np.float32)
    assert program.run({"m": np.array(3), "x": x, "i0": step})["y"].tolist() == [31, 62]


def _function(nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    function = helper.make_function("own", "F", ["a"], ["b"], nodes, [helper.make_opsetid("", 21)])
    proto = model(
        [helper.make_node("F", ["x"], ["y"], domain="own", name="call")],
        [tensor("x", FLOAT, (2,))],
        [tensor("y", FLOAT, (2,))],
    )
    proto.functions.append(function)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    return proto


@pytest.mark.parametrize(
    ("proto", "code", "named"),
    [
        (_function([helper.make_node("NoSuchOp", ["a"], ["b"])]), "E0103", "NoSuchOp"),
        (_function([helper.make_node("Relu", ["a"], ["c"])]), "E0105", "call"),
        (
            model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", FLOAT, (2,))], [tensor("z", FLOAT, (2,))]),
            "E0105",
            "z",
        ),
    ],
)
def test_what_nothing_defines_is_named(proto: onnx.ModelProto, code: str, named: str):
    with pytest.raises(FuselineError, match=rf"{code}.*{named}"):
        fuseline.compile(proto)
