"""Recurrent layers as loops of the program: every option against onnxruntime, compiled, run twice (the second time on a
used arena)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.api import emit
from fuseline.runtime import load
from fuseline.verify.dispatch_times import dispatch_seconds
from tests.graphs.onnx_text import call, declared, onnx_model

Array = NDArray[Any]
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
OPS = pytest.mark.parametrize("op_type", ["LSTM", "GRU", "RNN"])
DIRECTIONS = pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])


def layer(
    op_type: str,
    steps: int,
    batch: int,
    direction: str = "forward",
    *,
    sizes: tuple[Any, Any] | None = None,
    lengths: str = "",
    initial: bool = False,
    weights: str = "constant",
    outputs: tuple[int, ...] = (0, 1, 2),
    hidden: int = 9,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A layer of 5 features with random weights, and feeds for it; `sizes` are the declared steps and batch."""
    rng, directions, rows = (
        np.random.default_rng(steps * 31 + batch),
        1 + (direction == "bidirectional"),
        GATES[op_type] * hidden,
    )
    known, given = sizes or (steps, batch), dict[str, tuple[Array, list[Any]]]()
    constants = {
        "r": _random(rng, directions, rows, hidden) / np.float32(hidden) ** 0.5,
        "w": _random(rng, directions, rows, 5),
        "b": _random(rng, directions, 2 * rows),
    }
    if weights == "fed":
        given |= {name: (array, list(array.shape)) for name, array in constants.items()}
        constants = {}
    given["x"] = _random(rng, steps, batch, 5), [*known, 5]
    names = ["x", "w", "r", "b", "n" if lengths else ""]
    counts = rng.integers(1, steps + 1, batch, np.int32)
    if lengths == "constant":
        constants["n"] = counts
    elif lengths:
        given["n"] = counts, [known[1]]
    states = ["h", "c"] if op_type == "LSTM" else ["h"]
    for name in states if initial else ():
        given[name] = _random(rng, directions, batch, hidden), [directions, known[1], hidden]
    names += states if initial else []
    answers = [f"y{i}" if i in outputs else "" for i in range(1 + len(states))]
    while not names[-1]:
        names.pop()
    node = call(op_type, *names, results=answers, name="layer", hidden_size=hidden, direction=direction, **attributes)
    inputs = declared({name: array for name, (array, _) in given.items()}, {n: dims for n, (_, dims) in given.items()})
    results = ", ".join(f"float[] {name}" for name in answers if name)
    model = onnx_model(f"({inputs}) => ({results}) {{ {node} }}", constants, opset=13)
    return model, {name: array for name, (array, _) in given.items()}


def _random(rng: np.random.Generator, *shape: int) -> Array:
    return (rng.standard_normal(shape) * 0.5).astype(np.float32)


def agrees(model: onnx.ModelProto, feeds: dict[str, Array], target: str = "cpu", threads: int = 1) -> Any:
    """The compiled model, its results checked twice."""
    session: Any = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted: list[Array] = session.run(None, feeds)
    compiled: Any = fuseline.compile(model, target=target, threads=threads)
    for _ in range(2):
        found = compiled.run(feeds)
        for info, expected in zip(model.graph.output, wanted, strict=True):
            np.testing.assert_allclose(found[info.name], expected, rtol=1e-4, atol=1e-5)
    assert compiled.stats["host_ops"] == 0
    return compiled


@OPS
@DIRECTIONS
@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_a_loop_agrees_with_onnxruntime(op_type: str, direction: str, target: str) -> None:
    statistics = agrees(*layer(op_type, 6, 3, direction), target).stats
    assert statistics["loops"] == ["6"] and statistics["dispatches"] <= 5


@OPS
@DIRECTIONS
@pytest.mark.parametrize("lengths", ["fed", "constant"])
def test_sequences_end_where_they_end(op_type: str, direction: str, lengths: str) -> None:
    agrees(*layer(op_type, 6, 3, direction, lengths=lengths, initial=True))


@OPS
@pytest.mark.parametrize("steps", [1, 2, 7, 300])
def test_the_number_of_steps_may_be_unknown(op_type: str, steps: int) -> None:
    model, feeds = layer(op_type, steps, 2, "bidirectional", sizes=("steps", "batch"), lengths="fed", initial=True)
    assert agrees(model, feeds, threads=2).stats["loops"] == ["steps"]


def test_a_session_takes_any_number_of_steps() -> None:
    compiled: Any = fuseline.compile(layer("GRU", 4, 1, sizes=("steps", "batch"))[0])
    for steps, batch in ((4, 1), (1, 3), (50, 2), (4, 1)):
        model, _ = layer("GRU", 4, 1, sizes=("steps", "batch"))
        x = np.random.default_rng(steps).standard_normal((steps, batch, 5), np.float32)
        session: Any = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        for found, expected in zip(compiled.run({"x": x}).values(), session.run(None, {"x": x}), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@OPS
@pytest.mark.parametrize("outputs", [(0,), (1,), (0, 1)])
def test_results_that_nobody_reads_are_not_needed(op_type: str, outputs: tuple[int, ...]) -> None:
    agrees(*layer(op_type, 3, 2, outputs=outputs))


@OPS
def test_weights_may_be_computed(op_type: str) -> None:
    agrees(*layer(op_type, 4, 2, "bidirectional", weights="fed"))


@pytest.mark.parametrize("lengths", ["", "fed"])
def test_the_reset_gate_may_act_after_the_product(lengths: str) -> None:
    agrees(*layer("GRU", 5, 2, "bidirectional", lengths=lengths, linear_before_reset=1))


@OPS
def test_many_steps_on_several_threads(op_type: str) -> None:
    model, feeds = layer(op_type, 1000, 4, "bidirectional", hidden=33)
    artifact = agrees(model, feeds, threads=2).session.artifact
    shared: Any = fuseline.runtime.Session(
        artifact._replace(program=artifact.program._replace(serial_below_ns=0, split_above_ns=0)), threads=2
    )
    plain: Any = fuseline.runtime.Session(artifact, threads=1)
    for _ in range(3):
        for found, expected in zip(shared.run(feeds).values(), plain.run(feeds).values(), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_equal_layers_share_their_code_and_have_names_of_their_own() -> None:
    first, feeds = layer("GRU", 5, 2, hidden=5)
    second = onnx_model(
        "(x) => (float[] z) { [squeeze] rows = Squeeze(y0, axis)  [second] z = GRU<hidden_size = 5>(rows, w, r, b) }",
        axis=[1],
    )
    first.graph.node.extend(second.graph.node)
    first.graph.initializer.extend(second.graph.initializer)
    first.graph.output[0].CopyFrom(second.graph.output[0])
    del first.graph.output[1:]
    compiled = agrees(first, feeds)
    members = [member.id for dispatch in compiled.record.dispatches for member in dispatch.members]
    assert compiled.stats["loops"] == ["5", "5"] and len(set(members)) == len(members)
    assert {
        node for dispatch in compiled.record.dispatches for member in dispatch.members for node in member.nodes
    } >= {"layer", "second"}


def test_a_loop_is_saved_and_loaded(tmp_path: Path) -> None:
    model, feeds = layer("LSTM", 6, 2, "bidirectional", sizes=("steps", 2), initial=True)
    compiled: Any = fuseline.compile(model, threads=2)
    compiled.save(tmp_path / "layer.fuse")
    session = load(tmp_path / "layer.fuse", verify=True)
    for name, expected in compiled.run(feeds).items():
        np.testing.assert_array_equal(session.run(feeds)[name], expected)


def test_no_step_at_all_answers_the_first_states() -> None:
    model, feeds = layer("LSTM", 1, 2, initial=True)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 0
    found = (fuseline.compile(model)).run({**feeds, "x": np.empty((0, 2, 5), np.float32)})
    assert found["y0"].shape == (0, 1, 2, 9)
    np.testing.assert_array_equal(found["y1"], feeds["h"])
    np.testing.assert_array_equal(found["y2"], feeds["c"])


def test_compile_time_does_not_grow_with_the_steps() -> None:
    few, many = (len(emit(layer("LSTM", steps, 2)[0], "fusion")) for steps in (10, 5000))
    assert many < few + 200


def test_a_loop_is_no_host_operator_in_the_reasons() -> None:
    compiled: Any = fuseline.compile(layer("LSTM", 6, 2)[0])
    codes = {decision.code for decision in compiled.record.decisions if decision.verdict == "missed"}
    assert "loop" in codes and "host-op" not in codes


def test_a_dispatch_in_a_loop_is_timed_as_often_as_it_runs() -> None:
    times: list[float] = []
    for steps in (4, 400):
        model, feeds = layer("LSTM", steps, 2, hidden=64, sizes=("steps", 2), outputs=(0,))
        compiled: Any = fuseline.compile(model, threads=1)
        found = dispatch_seconds(compiled.session.artifact, feeds, 1)
        assert len(found) == compiled.stats["dispatches"] == 2
        times.append(found[1][1])
    assert times[1] > 20 * times[0] > 0


def test_statistics_count_the_steps_of_a_loop() -> None:
    short, long = (
        fuseline.compile(layer("RNN", steps, 2, outputs=(0,))[0], target="null").stats for steps in (10, 1000)
    )
    assert (short["dispatches"], short["launches"]) == (2, 11) and (long["dispatches"], long["launches"]) == (2, 1001)
    assert long["bytes_moved"] > 50 * short["bytes_moved"]
