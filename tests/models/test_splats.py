"""Constants that are one number, however many times: neither the compile nor what it makes is as large as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import ModelProto

import fuseline
from fuseline.errors import FuselineError
from tests.graphs.onnx_builder import FLOAT, Builder

Array = NDArray[Any]

HUGE = 1 << 34


def repeated(b: Builder, count: int, value: float = 2.0) -> str:
    """`value`, `count` times, by a node."""
    shape = b.constant(np.array([count], np.int64))
    return b.node("ConstantOfShape", shape, value=np.array([value], np.float32))


def returned(count: int) -> ModelProto:
    """A result that is one number, and one that is computed from such."""
    b = Builder()
    return b.model({"x": (FLOAT, (1,))}, {repeated(b, count): (count,)})


def summed(count: int) -> ModelProto:
    b = Builder()
    total = b.node(
        "ReduceMax", b.node("Add", b.node("Exp", repeated(b, count, 0.5)), b.constant(np.float32(1.5))), keepdims=0
    )
    return b.model({"x": (FLOAT, (3,))}, {b.node("Mul", total, "x"): (3,)})


def expanded(count: int) -> ModelProto:
    b = Builder()
    wide = b.node("Expand", b.constant(np.array([[3.5]], np.float32)), b.constant(np.array([2, count], np.int64)))
    return b.model(
        {"x": (FLOAT, (2, 1))},
        {b.node("Mul", b.node("ReduceMin", wide, b.constant(np.array([1], np.int64))), "x"): (2, 1)},
    )


def counted(count: int) -> ModelProto:
    b = Builder()
    row = b.node("Range", b.constant(np.float32(0)), b.constant(np.float32(count)), b.constant(np.float32(1)))
    return b.model({"x": (FLOAT, (1,))}, {b.node("Add", b.node("ReduceMin", row, keepdims=1), "x"): (1,)})


def weighted(op_type: str) -> ModelProto:
    """A splat where a kernel packs weights."""
    b = Builder()
    if op_type == "Conv":
        weight = b.constant(np.full((32, 256, 3, 3), 0.25, np.float32))
        return b.model({"x": (FLOAT, (1, 256, 5, 7))}, {b.node("Conv", "x", weight, pads=[1, 1, 1, 1]): (1, 32, 5, 7)})
    weight = b.constant(np.full((256, 300), -0.5, np.float32))
    if op_type == "MatMul":
        return b.model({"x": (FLOAT, ("n", 256))}, {b.node("MatMul", "x", weight): ("n", 300)})
    flat = b.node("Add", b.node("Transpose", weight, perm=[1, 0]), "x")
    return b.model(
        {"x": (FLOAT, (300, 256))},
        {b.node("Concat", flat, b.node("Transpose", weight, perm=[1, 0]), axis=0): (600, 256)},
    )


RUN: dict[str, tuple[Callable[[], ModelProto], tuple[int, ...]]] = {
    "returned": (lambda: returned((1 << 20) + 3), (1,)),
    "returned, small": (lambda: returned(70_000), (1,)),
    "summed": (lambda: summed(1 << 21), (3,)),
    "expanded": (lambda: expanded(1 << 20), (2, 1)),
    "counted": (lambda: counted((1 << 24) + 1), (1,)),
    "convolution": (lambda: weighted("Conv"), (1, 256, 5, 7)),
    "product": (lambda: weighted("MatMul"), (9, 256)),
    "sum and concat": (lambda: weighted("Add"), (300, 256)),
}


@pytest.mark.parametrize("name", RUN)
def test_what_is_computed_stays(name: str) -> None:
    make, shape = RUN[name]
    model = make()
    feeds: dict[str, Array] = {"x": np.random.default_rng(len(name)).standard_normal(shape).astype(np.float32)}
    (found,) = fuseline.compile(model, threads=1).run(feeds).values()
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    (wanted,) = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(
        None, feeds
    )
    np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("make", [returned, summed, expanded])
def test_a_splat_is_never_made_at_compile_time(make: Callable[[int], ModelProto]) -> None:
    program = fuseline.compile(make(HUGE), threads=1)
    assert sum(memoryview(block).nbytes for block in program.session.artifact.constants) < 1 << 16


def test_a_result_that_no_memory_holds_is_refused_before_it_is_made() -> None:
    with pytest.raises(FuselineError) as raised:
        fuseline.compile(returned(1 << 50), threads=1)
    assert raised.value.code == "E0405"


PEAK = """
import resource, sys
import numpy as np
import fuseline
from tests.models.test_splats import *
fuseline.compile(returned(70_000), threads=1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
fuseline.compile({graph}, threads=1)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "graph", ["returned(HUGE)", "summed(HUGE)", "expanded(HUGE)", "counted(1 << 31)", "summed(63_000_000)"]
)
def test_memory_of_a_compile_is_bounded(graph: str) -> None:
    """MiB that the largest compile takes beyond a small one."""
    paths = os.pathsep.join(path for path in sys.path if path)
    made = subprocess.run(
        [sys.executable, "-c", PEAK.replace("{graph}", graph)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert int(made.stdout) < 100
