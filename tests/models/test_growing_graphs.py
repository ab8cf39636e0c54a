"""Small graphs whose kernels would double with every node: they compile in bounded code, and compute what onnxruntime
computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto

import fuseline
from fuseline.report.explain import explain_model
from tests.graphs.onnx_builder import FLOAT, Builder

Array = NDArray[Any]

MOST_BYTES_PER_DISPATCH = 200_000


def rolled(steps: int, added: bool) -> ModelProto:
    """Each step is the one before, rolled by one: two slices and a concat, and a sum where `added`."""
    b = Builder()
    zero, one, far = (b.constant(np.array([n], np.int64)) for n in (0, 1, 2**31))
    y = "x"
    for _ in range(steps):
        turned = b.node("Concat", b.node("Slice", y, one, far, zero), b.node("Slice", y, zero, one, zero), axis=0)
        y = b.node("Add", turned, y) if added else turned
    return b.model({"x": (FLOAT, ("n",))}, {y: ("n",)})


def stencil(steps: int) -> ModelProto:
    """Differences of neighbours, padded to the length before."""
    b = Builder()
    zero, one, far, before = (b.constant(np.array([n], np.int64)) for n in (0, 1, 2**31, -1))
    pads, y = b.constant(np.array([0, 1], np.int64)), "x"
    for _ in range(steps):
        y = b.node(
            "Pad", b.node("Sub", b.node("Slice", y, one, far, zero), b.node("Slice", y, zero, before, zero)), pads
        )
    return b.model({"x": (FLOAT, ("n",))}, {y: ("n",)})


def enlarged(steps: int) -> ModelProto:
    """Linear interpolations of each other."""
    b, y = Builder(), "x"
    for _ in range(steps):
        y = b.node("Resize", y, "", b.constant(np.array([1, 1, 1.5, 1.5], np.float32)), mode="linear")
    return b.model({"x": (FLOAT, (1, 2, "h", "w"))}, {y: (1, 2, "p", "q")})


def normalised(steps: int) -> ModelProto:
    """Softmaxes of sines of softmaxes: rows that would be computed again for every sum."""
    b, y = Builder(), "x"
    for _ in range(steps):
        y = b.node("Sin", b.node("Softmax", y, axis=-1))
    return b.model({"x": (FLOAT, ("n", 13))}, {y: ("n", 13)})


def chain(op_type: str, steps: int) -> ModelProto:
    """One elementwise op after the other, each with a sum of its own operand."""
    b, y = Builder(), "x"
    for _ in range(steps):
        y = b.node("Add", b.node(op_type, y), "x")
    return b.model({"x": (FLOAT, ("n",))}, {y: ("n",)})


def wide_sum(op_type: str, count: int) -> ModelProto:
    """One op of very many operands."""
    b = Builder()
    parts = [b.node("Mul", "x", b.constant(np.float32(i))) for i in range(7)]
    y = b.node(op_type, *(parts[i % 7] for i in range(count)))
    return b.model({"x": (FLOAT, ("n",))}, {y: ("n",)})


def joined(parts: int) -> ModelProto:
    """The row sums of the absolute values of a concat of inputs of unknown lengths."""
    b = Builder()
    y = b.node(
        "ReduceSum",
        b.node("Abs", b.node("Concat", *(f"x{i}" for i in range(parts)), axis=1)),
        b.constant(np.array([1], np.int64)),
    )
    return b.model({f"x{i}": (FLOAT, (3, f"n{i}")) for i in range(parts)}, {y: (3, 1)})


def doubled(steps: int) -> ModelProto:
    """A concat of a concat of itself, and so on."""
    b, y = Builder(), "x"
    for _ in range(steps):
        y = b.node("Concat", y, y, axis=0)
    return b.model({"x": (FLOAT, ("n",))}, {y: ("m",)})


def least_of_logs() -> ModelProto:
    """The position of the least of log-softmaxes along another axis: a reduction of which one result is read by
    nobody."""
    b = Builder()
    y = b.node("ArgMin", b.node("LogSoftmax", "x", axis=1), axis=2, keepdims=1)
    return b.model({"x": (FLOAT, (3, "n", 3, 3))}, {y: (3, "n", 1, 3)}, TensorProto.INT64)


GRAPHS: dict[str, tuple[Callable[[], ModelProto], dict[str, tuple[int, ...]]]] = {
    "rolled": (lambda: rolled(9, added=False), {"x": (21,)}),
    "rolled and added": (lambda: rolled(5, added=True), {"x": (37,)}),
    "stencil": (lambda: stencil(7), {"x": (45,)}),
    "enlarged": (lambda: enlarged(3), {"x": (1, 2, 3, 5)}),
    "normalised": (lambda: normalised(9), {"x": (5, 13)}),
    "sines": (lambda: chain("Sin", 60), {"x": (50,)}),
    "a long chain": (lambda: chain("Abs", 250), {"x": (50,)}),
    "a wide sum": (lambda: wide_sum("Sum", 600), {"x": (50,)}),
    "a wide mean": (lambda: wide_sum("Mean", 300), {"x": (50,)}),
    "many parts": (lambda: joined(14), {f"x{i}": (3, 1 + (5 * i) % 9) for i in range(14)}),
    "doubled": (lambda: doubled(9), {"x": (5,)}),
    "an unread result": (least_of_logs, {"x": (3, 7, 3, 3)}),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_code_is_bounded_and_right(name: str) -> None:
    make, shapes = GRAPHS[name]
    model, rng = make(), np.random.default_rng(len(name))
    feeds: dict[str, Array] = {k: rng.standard_normal(shape).astype(np.float32) for k, shape in shapes.items()}
    program = fuseline.compile(model, threads=1)
    assert program.stats["code_bytes"] <= MOST_BYTES_PER_DISPATCH * program.stats["dispatches"]
    (found,) = program.run(feeds).values()
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, feeds)
    scale = float(np.abs(np.asarray(wanted, np.float64)).max(initial=1e-6))
    np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-4, atol=1e-5 * scale)


def test_the_limit_is_told() -> None:
    """The reason is in the records, with numbers, and the partition is the same each time."""
    programs = [fuseline.compile(rolled(9, added=False), threads=1) for _ in range(2)]
    assert programs[0].stats["dispatches"] == programs[1].stats["dispatches"] > 1
    assert programs[0].stats["edges"]["missed"].get("code-limit")
    assert any("code-limit" in line for line in explain_model(programs[0].record).lines)
