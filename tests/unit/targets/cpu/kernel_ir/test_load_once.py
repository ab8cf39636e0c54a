"""A scalar that nothing writes is loaded once, where the kernel begins, and takes the fast forms of a constant."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Kernel, Operand, Value
from tests.kernel_ir.evaluate import evaluate

WIDTH = 8


def _bounded(dtype: str, *, nested: bool) -> Kernel:
    """Blocks of `x`, each element at least the scalar `c` and times it, read in a loop."""
    k = KernelBuilder("bounded", machine("avx2"))
    x, c, y = k.binding(0, dtype, 32), k.binding(1, dtype, 1), k.binding(2, dtype, 32, writable=True)

    def block(i: Operand) -> None:
        scalar = k.load_once(c)
        assert k.load_once(c) is scalar
        value = k.load(x, k.mul(i, WIDTH), WIDTH)
        bounded = k.maximum(value, k.splat(scalar, WIDTH)) if value.type.is_float else value
        k.store(y, k.mul(i, WIDTH), k.mul(bounded, scalar))

    def inner(i: Operand, *_: Value) -> tuple[()]:
        k.loop(0, 1, 1, lambda j, *__: (block(k.add(i, j)), ())[1]) if nested else block(i)
        return ()

    k.loop(k.begin, k.end, 1, inner)
    return k.finish()


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("dtype", ["f32", "i32"])
def test_it_stands_before_the_loops_once(dtype: str, nested: bool) -> None:
    kernel = _bounded(dtype, nested=nested)
    outside = [op.op for op in kernel.body.ops if isinstance(op, Value)]
    assert outside.count("load") == 1 and "splat" in outside


@pytest.mark.parametrize("dtype", ["f32", "i32"])
def test_it_is_read_as_it_is(dtype: str) -> None:
    rng = np.random.default_rng()
    kernel, kind = _bounded(dtype, nested=True), np.dtype({"f32": "float32", "i32": "int32"}[dtype])
    x, c, y = (rng.integers(-9, 9, size).astype(kind) for size in (32, 1, 32))
    evaluate(kernel, [x, c, y], [], 0, 4)
    np.testing.assert_array_equal(y, (np.maximum(x, c) if dtype == "f32" else x) * c)


def test_a_bound_that_is_a_number_needs_no_test_for_nan() -> None:
    k = KernelBuilder("bounds", machine("avx2"))
    known, other = k.load_once(k.binding(0, "f32", 1)), k.load(k.binding(1, "f32", 8), 0, 8)
    assert k.maximum(other, known).op == "max" and k.minimum(known, other).op == "min"
    assert k.maximum(other, k.load(k.binding(2, "f32", 8), 0, 8)).op == "select"
    assert k.maximum(other, k.const(float("nan"), "f32", 8)).op == "select"
