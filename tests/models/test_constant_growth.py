"""What follows from small constants may be large: folding stops at its caps, and the program is right on either side of
them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto

import fuseline
from fuseline.ir import constant_budget
from fuseline.passes.cleanup import fold_constants
from tests.draws import RNG
from tests.graphs.onnx_builder import FLOAT, INT64, Builder
from tests.one_node import by_onnxruntime

Array = NDArray[Any]
MIB = 1 << 20


def sizes(b: Builder, *values: int) -> str:
    return b.constant(np.array(values, np.int64))


def scalar(b: Builder, value: int) -> str:
    return b.constant(np.array(value, np.int64))


def row(b: Builder, n: int) -> str:
    return b.weight(1, n)


def expanded(b: Builder, n: int) -> str:
    return b.node("Expand", row(b, n), sizes(b, n, n))


def tiled(b: Builder, n: int) -> str:
    return b.node("Tile", row(b, n), sizes(b, n, 1))


def counted(b: Builder, n: int) -> str:
    """Of integers, each of which f32 holds."""
    half = b.node("ConstantOfShape", sizes(b, n * n), value=np.array([0.5], np.float32))
    count = b.node("Range", scalar(b, 0), scalar(b, n * n), scalar(b, 1))
    return b.node("Mul", b.node("Cast", b.node("Mod", count, sizes(b, 4099)), to=FLOAT), half)


def diagonal(b: Builder, n: int) -> str:
    return b.node("EyeLike", b.node("ConstantOfShape", sizes(b, n, n)), dtype=FLOAT, k=3)


def gathered(b: Builder, n: int) -> str:
    return b.node("Gather", b.weight(7, n), b.constant(RNG.integers(0, 7, n)))


def product(b: Builder, n: int) -> str:
    return b.node("MatMul", b.weight(n, 2), b.weight(2, n))


def widened(b: Builder, n: int) -> str:
    """Stored in bytes, computed with in floats."""
    return b.node(
        "DequantizeLinear", b.constant(RNG.integers(-128, 128, (n, n)).astype(np.int8)), b.constant(np.float32(0.02))
    )


def half_again(b: Builder, n: int) -> str:
    """Each is half as long again as the one before it, which is what one fold may make of what it reads."""
    y, size = b.weight(n), n
    while size < n * n:
        y, size = b.node("Concat", y, b.node("Slice", y, sizes(b, 0), sizes(b, size // 2)), axis=0), size + size // 2
    return y


CONSTANTS: dict[str, Callable[[Builder, int], str]] = {
    "expand": expanded, "tile": tiled, "range": counted, "diagonal": diagonal,
    "gather": gathered, "product": product, "widened": widened, "half again": half_again,
}  # fmt: skip


def one_large(name: str, n: int) -> ModelProto:
    """`n * n` elements of a constant, and the sum of its largest and its smallest."""
    b = Builder()
    large = CONSTANTS[name](b, n)
    ends = b.node("Add", b.node("ReduceMax", large, keepdims=0), b.node("ReduceMin", large, keepdims=0))
    return b.model({"x": (FLOAT, (3,))}, {b.node("Mul", ends, "x"): (3,)})


def many_ranges(n: int, count: int) -> ModelProto:
    """The sum of `count` constants of `n` whole numbers in 8 bytes, each from another start on, of which `x` picks
    some."""
    b = Builder()
    steps = [scalar(b, 1 + i % 3) for i in range(count)]
    parts = [b.node("Range", scalar(b, i), scalar(b, i + n * (1 + i % 3)), step) for i, step in enumerate(steps)]
    picked = [b.node("Cast", b.node("Gather", part, "x"), to=FLOAT) for part in parts]
    return b.model({"x": (INT64, (5,))}, {b.node("Sum", *picked): (5,)})


def many_of_one(n: int, count: int) -> ModelProto:
    """`count` weights that are computed from one."""
    b = Builder()
    weight = b.weight(n, n)
    parts = [b.node("MatMul", "x", b.node("Add", weight, row(b, n))) for _ in range(count)]
    return b.model({"x": (FLOAT, (3, n))}, {b.node("Sum", *parts): (3, n)})


def constants_of(model: ModelProto, *shape: int) -> int:
    """Bytes of constants in the artifact, whose program is right."""
    program, x = fuseline.compile(model, threads=1), RNG.standard_normal(shape).astype(np.float32)
    (found,) = program.run({"x": x}).values()
    wanted = np.asarray(by_onnxruntime(model, {"x": x})[0])
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * float(np.abs(wanted).max()))
    return sum(memoryview(block).nbytes for block in program.session.artifact.constants)


@pytest.fixture
def low_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold_constants, "MOST_BYTES", MIB // 2)
    monkeypatch.setattr(constant_budget, "ALWAYS_WORDS", MIB // 8)


@pytest.mark.usefixtures("low_caps")
@pytest.mark.parametrize("name", CONSTANTS)
def test_no_constant_is_larger_than_the_cap(name: str) -> None:
    model = one_large(name, 512)
    assert constants_of(model, 3) <= model.ByteSize() + MIB // 2 + fold_constants.ALWAYS_BYTES


def test_below_the_cap_a_constant_is_folded() -> None:
    """So that the caps above are what keeps them small."""
    assert constants_of(many_of_one(100, 10), 3, 100) >= 10 * 4 * 100 * 100


@pytest.mark.usefixtures("low_caps")
def test_constants_that_follow_from_one_are_capped_together() -> None:
    """Ten of 360 KiB: the weight's own, what may come to it, and the vectors."""
    model = many_of_one(300, 10)
    assert constants_of(model, 3, 300) <= model.ByteSize() + 4 * MIB // 8


def assert_few_ranges(n: int, most_bytes: int) -> None:
    """Of five ranges in 8 bytes only as many are constants as there is room for; compiling takes no more memory
    either."""
    model, places = many_ranges(n, 5), RNG.integers(0, n, 5)
    fuseline.compile(many_ranges(100, 5), threads=1)
    tracemalloc.start()
    try:
        program = fuseline.compile(model, threads=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    (found,) = program.run({"x": places}).values()
    np.testing.assert_allclose(found, sum(i + places * (1 + i % 3) for i in range(5)), rtol=1e-6)
    stored = sum(memoryview(block).nbytes for block in program.session.artifact.constants)
    assert 8 * n <= stored <= most_bytes + 64 * 5
    assert peak <= 4 * most_bytes + 16 * MIB


@pytest.mark.usefixtures("low_caps")
def test_ranges_are_capped_together() -> None:
    assert_few_ranges(60_000, MIB // 2)


@pytest.mark.slow
def test_the_real_cap_of_ranges() -> None:
    assert_few_ranges(60 * MIB // 8, 64 * MIB)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONSTANTS)
def test_the_real_cap(name: str) -> None:
    """100 MB. In memory there may be what is made, the two thirds of it that it is made from, and its copy in the
    artifact."""
    model = one_large(name, 5000)
    fuseline.compile(one_large(name, 50), threads=1)
    tracemalloc.start()
    try:
        fuseline.compile(model, threads=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 2 * model.ByteSize() + 170 * MIB
    assert constants_of(model, 3) <= model.ByteSize() + 64 * MIB


@pytest.mark.slow
def test_the_real_cap_of_many() -> None:
    model = many_of_one(1000, 40)
    assert constants_of(model, 3, 1000) <= model.ByteSize() + 64 * MIB
