"""Values that no tensor of the IR can be: they stay on the host, what is native around them stays native, and every
node is counted."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper

import fuseline
from fuseline.api import emit
from fuseline.errors import FuselineError
from fuseline.frontends.onnx import read_onnx
from fuseline.ir.context import new_context
from tests.graphs.onnx_text import onnx_model

TARGETS = ("cpu", "interpreter")


def model(text: str, **weights: Any) -> onnx.ModelProto:
    """Functions called in the domain `own` are added by `with_function`."""
    return onnx_model(text, weights, opset=21, ir_version=10)


def with_function(proto: onnx.ModelProto, name: str, *nodes: onnx.NodeProto) -> onnx.ModelProto:
    """The model with `own.name(a) -> b`."""
    proto.functions.append(helper.make_function("own", name, ["a"], ["b"], nodes, [helper.make_opsetid("", 21)]))
    if all(imported.domain != "own" for imported in proto.opset_import):
        proto.opset_import.append(helper.make_opsetid("own", 1))
    return proto


def hosts(program: fuseline.CompiledModel) -> list[tuple[str, str]]:
    return [(host.node, host.op_type) for host in program.record.host_ops]


def mixed() -> onnx.ModelProto:
    """Strings beside numbers; rows of a native result in a sequence, one of which is computed with natively again."""
    text = """(string[n] s, float[n, 4] x, int64 i) => (t, q, e) {
        [normalize] t = StringNormalizer<case_change_action = "UPPER">(s)
        [relu] r = Relu(x)
        [split] q = SplitToSequence<axis = 0>(r, one)
        [at] a = SequenceAt(q, i)
        [double] b = Add(a, a)
        [exp] e = Exp(b)
    }"""
    return model(text, one=np.array(1))


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
    text = "(float[3, 16] x) => (float[3, 8] y) { d = DequantizeLinear<axis = 1>(w, k) y = MatMul(x, d) }"
    proto = model(text, w=weights.astype(ml_dtypes.int4), k=scales)
    program = fuseline.compile(proto, threads=1)
    assert program.stats["host_ops"] == 0
    x = rng.standard_normal((3, 16)).astype(np.float32)
    np.testing.assert_allclose(program.run({"x": x})["y"], x @ (weights * scales), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", TARGETS)
def test_a_constant_that_is_an_output(target: str):
    words = np.array(["a", "bé"], object)
    text = '(float[2] x) => (string[2] c, y, w) { [words] c = Constant<value = string[2] {"a", "bé"}>() y = Relu(x) }'
    program = fuseline.compile(model(text, w=words), target=target, threads=1)
    out = program.run({"x": np.array([-1, 1], np.float32)})
    assert out["c"].tolist() == out["w"].tolist() == words.tolist()
    assert out["y"].tolist() == [0, 1]


@pytest.mark.parametrize("target", TARGETS)
def test_an_input_that_is_an_output(target: str):
    proto = model("(float[2] q) => (q) { }")
    for info in (*proto.graph.input, *proto.graph.output):
        info.type.CopyFrom(helper.make_optional_type_proto(helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)))
    program = fuseline.compile(proto, target=target, threads=1)
    assert program.inputs[0].type == "optional(tensor(float32))" and program.stats["host_ops"] == 0
    assert program.run({"q": None}) == {"q": None}
    found = program.run({"q": np.ones(2, np.float32)})["q"]
    assert found.tolist() == [1, 1]


@pytest.mark.parametrize("target", TARGETS)
def test_an_unknown_rank_ends_where_a_rank_is_known_again(target: str):
    """What reads a tensor of unknown rank runs on the host; after a Reshape the program is native again."""
    text = """(float[6] x, int64[rank] shape) => (y, m) {
        [to] r = Reshape(x, shape)
        [neg] m = Neg(r)
        [back] f = Reshape(m, flat)
        [exp] y = Exp(f)
    }"""
    program = fuseline.compile(model(text, flat=np.array([-1])), target=target, threads=1)
    assert hosts(program) == [("to", "Reshape"), ("neg", "Neg"), ("back", "Reshape")]
    assert program.outputs[1].type == "any_rank(tensor(float32))"
    x = np.random.default_rng(7).standard_normal(6).astype(np.float32)
    for wanted in ((2, 3), (6,), (1, 3, 2)):
        out = program.run({"x": x, "shape": np.array(wanted)})
        np.testing.assert_array_equal(out["m"], -x.reshape(wanted))
        np.testing.assert_allclose(out["y"], np.exp(-x), rtol=1e-6)


def test_an_input_of_unknown_rank_is_noted():
    proto = model("(float[] x) => (y) { y = Relu(x) }")
    program = fuseline.compile(proto, threads=1)
    assert program.stats["host_ops"] == 1 and any("--shape" in note for note in program.record.notes)
    assert program.run({"x": np.array([[-1, 2]], np.float32)})["y"].tolist() == [[0, 2]]
    assert fuseline.compile(proto, threads=1, shapes={"x": (1, 2)}).stats["host_ops"] == 0


@pytest.mark.parametrize("stage", ["input", "layout"])
@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_a_printed_program_still_says_what_is_unsigned(stage: str, target: str, tmp_path: Any):
    """Read as signed, the largest number would come first."""
    model = onnx_model(
        "g (uint64[5] x) => (double[k] y) { d = Add(x, x) u = Unique <sorted = 1>(d) y = Cast <to = 11>(u) }"
    )
    (path := tmp_path / "printed.mlir").write_text(emit(model, stage))
    x = np.array([2**62 + 10**6, 5, 2**62 + 5 * 10**6, 7, 7], np.uint64)
    expected = np.unique(x + x).astype(np.float64)
    for source in (model, path):
        np.testing.assert_array_equal(fuseline.compile(source, target=target, threads=1).run({"x": x})["y"], expected)


def test_a_host_op_keeps_the_sizes_it_is_given():
    ctx = new_context()
    read_onnx(model("(float[n, 3, 3] x) => (y) { d = Det(x) y = Exp(d) }"), ctx)
    assert set(ctx.symbols) == {"n"} and len(ctx.records.host_ops) == 1


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_with_a_length_that_is_fed_reads_what_is_around_it(target: str):
    """The body concatenates to its state, whose size grows, and calls a function of the model."""
    text = """(float[2] z, int64 m) => (float[o] y) {
        x = Relu(z)
        [grow] l = Loop(m, "", x) <body = body (int64 i, bool on, float[k] s) => (bool go, float[m] t) {
            d = own.Double(x)
            t = Concat<axis = 0>(s, d)
            go = Identity(on)
        }>
        y = Neg(l)
    }"""
    proto = with_function(model(text), "Double", helper.make_node("Add", ["a", "a"], ["b"]))
    program = fuseline.compile(proto, target=target, threads=1)
    assert hosts(program) == [("grow", "Loop"), ("grow", "Double"), ("grow", "Concat"), ("grow", "Identity")]
    z = np.array([-1, 3], np.float32)
    for trips in (0, 1, 4):
        assert program.run({"z": z, "m": np.array(trips)})["y"].tolist() == [0, -3, *[0, -6] * trips]


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_on_the_host_runs_only_where_it_is_taken(taken: bool):
    """Reading a sequence out of bounds fails; the branch that does it must not run."""
    text = """(float[2] x, bool c) => (float[2] y) {
        q = SequenceConstruct(x)
        [if] y = If(c) <then_branch = good () => (b) { b = SequenceAt(q, zero) },
                        else_branch = bad () => (b) { b = SequenceAt(q, five) }>
    }"""
    program = fuseline.compile(model(text, five=np.array(5), zero=np.array(0)), threads=1)
    feeds = {"x": np.array([1, 2], np.float32), "c": np.array(taken)}
    assert [op for _, op in hosts(program)] == ["SequenceConstruct", "If", "SequenceAt", "SequenceAt"]
    if taken:
        assert program.run(feeds)["y"].tolist() == [1, 2]
    else:
        with pytest.raises(FuselineError, match="E0106"):
            program.run(feeds)


def test_results_that_nothing_needs_are_not_counted():
    program = fuseline.compile(model("(float[3] x) => (y) { [unused] i = NonZero(x) y = Relu(x) }"), threads=1)
    assert program.stats["host_ops"] == 0 and not program.record.host_ops


def test_unknown_operators_among_held_values_are_listed_at_once():
    text = """(string[2] s) => (a, c) {
        [first] a = NoSuchOp(s)
        [fine] t = StringNormalizer(s)
        [second] c = NorThis(t)
    }"""
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(model(text))
    assert caught.value.code == "E0103"
    assert "first" in caught.value.message and "second" in caught.value.message and "fine" not in caught.value.message


def test_random_numbers_are_drawn_in_every_run():
    text = "(float[8] x) => (y) { r = RandomNormal<shape = [8]>() y = Add(x, r) }"
    program = fuseline.compile(model(text), threads=1)
    x = np.zeros(8, np.float32)
    assert not np.array_equal(program.run({"x": x})["y"], program.run({"x": x})["y"])


def test_names_around_a_loop_may_be_those_of_its_own_inputs():
    text = """(int64 m, float[2] x, float[2] i0) => (float[2] y) {
        y = Loop(m, "", x) <body = body (int64 trip, bool on, float[2] s) => (bool go, float[2] o0) {
            o0 = Add(s, i0)
            go = Identity(on)
        }>
    }"""
    program = fuseline.compile(model(text), threads=1)
    x, step = np.array([1, 2], np.float32), np.array([10, 20], np.float32)
    assert program.run({"m": np.array(3), "x": x, "i0": step})["y"].tolist() == [31, 62]


CALL = "(float[2] x) => (float[2] y) { [call] y = own.F(x) }"


@pytest.mark.parametrize(
    ("proto", "code", "named"),
    [
        (with_function(model(CALL), "F", helper.make_node("NoSuchOp", ["a"], ["b"])), "E0103", "NoSuchOp"),
        (with_function(model(CALL), "F", helper.make_node("Relu", ["a"], ["c"])), "E0105", "call"),
        (model("(float[2] x) => (float[2] z) { y = Relu(x) }"), "E0105", "z"),
    ],
)
def test_what_nothing_defines_is_named(proto: onnx.ModelProto, code: str, named: str):
    with pytest.raises(FuselineError, match=rf"{code}.*{named}"):
        fuseline.compile(proto)
