"""Graphs of thousands of nodes: the work of a compile grows with their length, no faster, and no chain is too long for
Python's stack.

Work is counted in calls of Python functions, which depend on no clock: twice the graph may take 2.6 times the calls,
beside what every compile takes.
"""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable

import numpy as np
import pytest
from onnx import ModelProto

import fuseline
from tests.graphs.onnx_builder import FLOAT, Builder
from tests.graphs.onnx_text import onnx_model

MOST_GROWTH = 2.6

ONE_GROUP = ("elementwise", "shared")
"""Where one dispatch takes in node after node: each merge looks at all that are in it, so until it is as long as
`code_limit` says that part of the work is quadratic."""


def elementwise(n: int) -> ModelProto:
    b, y = Builder(), "x"
    for i in range(n):
        y = b.node(("Relu", "Tanh", "Neg", "Abs")[i % 4], y)
    return b.model({"x": (FLOAT, ("n", 8))}, {y: ("n", 8)})


def convolutions(n: int) -> ModelProto:
    b, y = Builder(), "x"
    for _ in range(n // 2):
        y = b.node("Relu", b.node("Conv", y, b.weight(4, 4, 3, 3), pads=[1, 1, 1, 1]))
    return b.model({"x": (FLOAT, (1, 4, 8, 8))}, {y: (1, 4, 8, 8)})


def transformer(n: int) -> ModelProto:
    b, y = Builder(), "x"
    for _ in range(n // 12):
        q, k, v = (b.node("MatMul", y, b.weight(8, 8)) for _ in range(3))
        s = b.node("Softmax", b.node("MatMul", q, b.node("Transpose", k, perm=[0, 2, 1])), axis=-1)
        y = b.node("LayerNormalization", b.node("Add", y, b.node("MatMul", s, v)), b.weight(8), axis=-1)
        y = b.node("Add", y, b.node("MatMul", b.node("Relu", b.node("MatMul", y, b.weight(8, 16))), b.weight(16, 8)))
    return b.model({"x": (FLOAT, (1, "n", 8))}, {y: (1, "n", 8)})


def rolled(n: int) -> ModelProto:
    """Slices that are put together again, the other way round."""
    b, y = Builder(), "x"
    zero, one, far = (b.constant(np.array([i], np.int64)) for i in (0, 1, 2**31))
    for _ in range(n // 3):
        y = b.node("Concat", b.node("Slice", y, one, far, one), b.node("Slice", y, zero, one, one), axis=1)
    return b.model({"x": (FLOAT, (3, 8))}, {y: (3, 8)})


def shared(n: int) -> ModelProto:
    """Every value is read three times, so that there are 3 ** n paths."""
    b, y = Builder(), "x"
    for _ in range(n // 2):
        y = b.node("Mul", b.node("Add", y, y), y)
    return b.model({"x": (FLOAT, ("n", 8))}, {y: ("n", 8)})


def fan_out(n: int) -> ModelProto:
    """One value with `n` readers, each of them a result."""
    b = Builder()
    y = b.node("Tanh", "x")
    return b.model({"x": (FLOAT, ("n", 8))}, {b.node("Add", y, b.constant(np.float32(i))): ("n", 8) for i in range(n)})


def many_inputs(n: int) -> ModelProto:
    b = Builder()
    y = b.node("Sum", *(f"x{i}" for i in range(n)))
    return b.model({f"x{i}": (FLOAT, ("n", 8)) for i in range(n)}, {y: ("n", 8)})


def many_parts(n: int) -> ModelProto:
    b = Builder()
    y = b.node("Concat", *(f"x{i}" for i in range(n)), axis=0)
    return b.model({f"x{i}": (FLOAT, (2, 8)) for i in range(n)}, {y: (2 * n, 8)})


GRAPHS: dict[str, Callable[[int], ModelProto]] = {
    "elementwise": elementwise, "convolutions": convolutions, "transformer": transformer, "rolled": rolled,
    "shared": shared, "fan-out": fan_out,
    "many inputs": many_inputs, "many parts": many_parts,
}  # fmt: skip


def _calls(model: ModelProto) -> int:
    """The calls of Python functions that a compile takes."""
    profile = cProfile.Profile()
    profile.runcall(fuseline.compile, model, threads=1, target="null")
    return int(getattr(pstats.Stats(profile), "total_calls"))  # noqa: B009 - the stubs do not have it


def _grows_with_length(name: str, size: int) -> None:
    make = GRAPHS[name]
    _calls(make(12))  # imports and caches
    least, whole, twice = (_calls(make(length)) for length in (12, size, 2 * size))
    assert twice - least <= MOST_GROWTH * (whole - least)


@pytest.mark.parametrize("name", GRAPHS)
def test_short_graphs(name: str) -> None:
    _grows_with_length(name, 48)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in GRAPHS if name not in ONE_GROUP])
def test_long_graphs(name: str) -> None:
    _grows_with_length(name, 1200)


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_chains_are_not_limited_by_the_stack(name: str) -> None:
    stats = fuseline.compile(GRAPHS[name](4000), threads=1, target="null").stats
    assert stats["dispatches"] or stats["copies"]


def nested(depth: int) -> ModelProto:
    """An If in an If and so on."""
    nodes = "o0 = Relu(x)"
    for level in range(1, depth + 1):
        then = f"then{level} () => (float[n, 8] o{level - 1}) {{ {nodes} }}"
        otherwise = f"else{level} () => (float[n, 8] e{level}) {{ e{level} = Neg(x) }}"
        nodes = f"o{level} = If<then_branch = {then}, else_branch = {otherwise}>(c)"
    return onnx_model(f"(float[n, 8] x, bool c) => (float[n, 8] o{depth}) {{ {nodes} }}")


@pytest.mark.parametrize("depth", [3, pytest.param(12, marks=pytest.mark.slow)])
def test_nested_branches(depth: int) -> None:
    x = np.random.default_rng(depth).standard_normal((5, 8)).astype(np.float32)
    program = fuseline.compile(nested(depth), threads=1)
    for condition, wanted in ((True, np.maximum(x, 0)), (False, -x)):
        (found,) = program.run({"x": x, "c": np.array(condition)}).values()
        np.testing.assert_array_equal(found, wanted)
