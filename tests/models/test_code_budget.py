"""Kernels stay within the budget of code that is counted while they are emitted, whatever family makes them, and are as
right as others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto

import fuseline
from fuseline.report.explain import explain_node
from fuseline.targets.cpu import code_budget
from tests.graphs.onnx_builder import FLOAT, Builder
from tests.one_node import by_onnxruntime

Array = NDArray[Any]
Body = Callable[[Builder, str, int], str]
BYTES_PER_INSTRUCTION = 12
"""At the most; 9 on average."""

LONG = ("Sin", "Cos", "Tanh", "Erf", "Sigmoid", "Atan", "Asinh", "Softplus")
"""Functions of any argument, of 20 to 400 operations each."""


def _body(ops: Sequence[str]) -> Body:
    """The value behind the `count`-th part of `ops`: each scaled, so that nothing fades away."""

    def body(b: Builder, y: str, part: int) -> str:
        for op in ops[part::2]:
            y = b.node("Mul", b.node(op, y), b.constant(np.float32(1.25)))
        return y

    return body


def _weights(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32) / 4


def _matmul(b: Builder, body: Body) -> tuple[str, tuple[int, ...]]:
    return body(b, body(b, b.node("MatMul", "x", b.constant(_weights(29, 53))), 0), 1), (37, 29)


def _prologue(b: Builder, body: Body) -> tuple[str, tuple[int, ...]]:
    return b.node("MatMul", body(b, body(b, "x", 0), 1), b.constant(_weights(29, 53))), (37, 29)


def _convolution(b: Builder, body: Body) -> tuple[str, tuple[int, ...]]:
    y = b.node("Conv", "x", b.constant(_weights(24, 5, 3, 3)), pads=[1, 1, 1, 1], strides=[2, 2])
    y = b.node("Conv", body(b, y, 0), b.constant(_weights(16, 24, 1, 1)))
    return body(b, y, 1), (1, 5, 15, 13)


def _winograd(b: Builder, body: Body) -> tuple[str, tuple[int, ...]]:
    return body(b, body(b, b.node("Conv", "x", b.constant(_weights(32, 16, 3, 3)), pads=[1, 1, 1, 1]), 0), 1), (
        1,
        16,
        14,
        14,
    )


def _depthwise(b: Builder, body: Body) -> tuple[str, tuple[int, ...]]:
    y = b.node(
        "Conv",
        b.node("Conv", "x", b.constant(_weights(40, 5, 1, 1))),
        b.constant(_weights(40, 1, 3, 3)),
        pads=[1, 1, 1, 1],
        group=40,
    )
    return b.node("Conv", body(b, body(b, y, 0), 1), b.constant(_weights(8, 40, 1, 1))), (1, 5, 13, 11)


def _pooled(b: Builder, body: Body) -> tuple[str, tuple[int, ...]]:
    y = b.node(
        "MaxPool", b.node("Conv", "x", b.constant(_weights(24, 5, 1, 1))), kernel_shape=[3, 3], pads=[1, 1, 1, 1]
    )
    return b.node("Conv", body(b, body(b, y, 0), 1), b.constant(_weights(8, 24, 1, 1))), (1, 5, 13, 11)


def _grouped(b: Builder, body: Body) -> tuple[str, tuple[int, ...]]:
    y = b.node(
        "Conv",
        b.node("Conv", "x", b.constant(_weights(24, 5, 1, 1))),
        b.constant(_weights(24, 6, 3, 3)),
        pads=[1, 1, 1, 1],
        group=4,
    )
    return b.node("Conv", body(b, body(b, y, 0), 1), b.constant(_weights(8, 24, 1, 1))), (1, 5, 13, 11)


def _reduction(b: Builder, body: Body) -> tuple[str, tuple[int, ...]]:
    return body(b, b.node("ReduceMean", body(b, "x", 0), b.constant(np.array([1], np.int64))), 1), (11, 37)


def _softmax(b: Builder, body: Body) -> tuple[str, tuple[int, ...]]:
    return body(b, b.node("Softmax", body(b, "x", 0), axis=-1), 1), (11, 37)


def _concat(b: Builder, body: Body) -> tuple[str, tuple[int, ...]]:
    parts = [body(b, b.node("Mul", "x", b.constant(np.float32(i))), i % 2) for i in range(14)]
    return b.node("Concat", *parts, axis=1), (5, 7)


def _scan(b: Builder, body: Body) -> tuple[str, tuple[int, ...]]:
    return body(b, b.node("CumSum", body(b, "x", 0), b.constant(np.array(0, np.int64))), 1), (9, 21)


def _attention(b: Builder, body: Body) -> tuple[str, tuple[int, ...]]:
    scores = body(b, b.node("MatMul", "x", b.node("Transpose", "x", perm=[0, 2, 1])), 0)
    return body(b, b.node("MatMul", b.node("Softmax", scores, axis=-1), "x"), 1), (3, 19, 13)


def _columns(b: Builder, body: Body) -> tuple[str, tuple[int, ...]]:
    return body(b, b.node("Transpose", body(b, "x", 0), perm=[1, 0]), 1), (21, 33)


FAMILIES = {
    "matmul": _matmul, "prologue": _prologue, "convolution": _convolution, "winograd": _winograd,
    "depthwise": _depthwise, "pooled": _pooled,
    "grouped": _grouped, "reduction": _reduction, "softmax": _softmax, "concat": _concat, "scan": _scan,
    "attention": _attention, "columns": _columns,
}  # fmt: skip


def _model(name: str, ops: Sequence[str]) -> tuple[ModelProto, dict[str, Array]]:
    b = Builder()
    y, shape = FAMILIES[name](b, _body(ops))
    rank = len(shape) - 1 if name == "reduction" else len(shape)
    model = b.model({"x": (FLOAT, shape)}, {y: tuple(f"d{i}" for i in range(rank + (name == "reduction")))})
    return model, {"x": np.random.default_rng(len(ops)).standard_normal(shape).astype(np.float32)}


def _is_right_and_short(name: str, ops: Sequence[str]) -> Any:
    model, feeds = _model(name, ops)
    program = fuseline.compile(model, threads=1)
    assert "over-budget" not in program.stats["forms"]
    most = code_budget.CODE_BUDGET * BYTES_PER_INSTRUCTION + 1000 * program.stats["edges"]["fused"]
    assert program.stats["code_bytes"] <= most * program.stats["executables"]
    (found,), (wanted,) = program.run(feeds).values(), by_onnxruntime(model, feeds)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4 * float(np.abs(wanted).max()))
    return program


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("budget", [400, 1500])
def test_small_budgets(name: str, budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every family has a compact form, and what is too long even so is split."""
    monkeypatch.setattr(code_budget, "CODE_BUDGET", budget)
    model, feeds = _model(name, ["Tanh", "Relu", "Softplus", "Abs", "Erf", "Neg"])
    whole, alone = (fuseline.compile(model, threads=1, fusion=fusion) for fusion in ("default", "none"))
    assert whole.stats["dispatches"] <= alone.stats["dispatches"]
    assert set(whole.stats["forms"]) <= {"full", "compact", "over-budget"}
    for program in (whole, alone):
        (found,), (wanted,) = program.run(feeds).values(), by_onnxruntime(model, feeds)
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4 * float(np.abs(wanted).max()))


@pytest.mark.parametrize("name", ["matmul", "attention"])
def test_long_bodies(name: str) -> None:
    _is_right_and_short(name, ["Sin"] * 40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", FAMILIES)
def test_random_long_bodies(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    _is_right_and_short(name, [LONG[i] for i in rng.integers(0, len(LONG), int(rng.integers(20, 90)))])


def test_the_split_is_told_and_repeatable() -> None:
    """The reason is in the records, with numbers, and the code is the same each time."""
    model, _ = _model("matmul", ["Sin"] * 24)
    programs = [fuseline.compile(model, threads=1) for _ in range(2)]
    assert programs[0].session.artifact.code == programs[1].session.artifact.code
    assert programs[0].stats["edges"]["missed"].get("code-limit")
    assert any("came out too long" in decision.detail for decision in programs[0].record.decisions)


def test_compact_code_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_budget, "CODE_BUDGET", 6000)
    program = fuseline.compile(_model("matmul", ["Sin"])[0], threads=1)
    assert (program.stats["forms"], program.stats["dispatches"]) == ({"compact": 1}, 1)
    (dispatch,) = program.record.dispatches
    assert "compact code" in explain_node(program.record, dispatch.name).lines[0]


def test_one_long_op_is_over_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be split, and keeps its family."""
    monkeypatch.setattr(code_budget, "CODE_BUDGET", 20)
    b = Builder()
    model = b.model({"x": (FLOAT, (5, 37))}, {b.node("Erf", "x"): (5, 37)})
    program = fuseline.compile(model, threads=1)
    assert program.stats["forms"] == {"over-budget": 1}
    assert program.record.dispatches[0].family == "elementwise"
    x = np.random.default_rng(0).standard_normal((5, 37)).astype(np.float32)
    (found,), (wanted,) = program.run({"x": x}).values(), by_onnxruntime(model, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
