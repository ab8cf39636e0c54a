"""A kernel inside a kernel: its parameters are mapped, its scratch is given back."""

from __future__ import annotations

import numpy as np

from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import Inlined, KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand
from tests.kernel_ir.evaluate import evaluate


def scaled_by_size(k: KernelBuilder) -> None:
    """Binding 1 is binding 0 times size 0, one element per workgroup, by way of scratch."""
    x, y, held = k.binding(0, "i64", 8), k.binding(1, "i64", 8, writable=True), k.scratch("i64", 1)

    def body(i: Operand) -> None:
        k.store(held, 0, k.mul(k.load(x, i), k.size(0)))
        k.store(y, i, k.load(held, 0))

    k.loop(k.begin, k.end, 1, body)


def test_parameters_are_those_of_the_kernel_around_or_its_scratch():
    k = KernelBuilder("outer", machine("avx2"))
    between = k.scratch("i64", 8)

    def body(i: Operand) -> None:
        with k.inlined(Inlined(0, 8, [3], {0: 1, 1: between})):
            scaled_by_size(k)
        with k.inlined(Inlined(i, k.add(i, 4), [k.size(0)], {0: between, 1: 0})):
            scaled_by_size(k)

    k.loop(k.begin, k.end, 4, body)
    assert k.begin is not None and k.size(0).op == "size"  # pyright: ignore[reportAttributeAccessIssue]
    kernel = k.finish()
    x, y = np.arange(8), np.zeros(8, np.int64)
    evaluate(kernel, [y, x], [5], 4, 8)
    np.testing.assert_array_equal(y, [0, 0, 0, 0, 60, 75, 90, 105])


def test_scratch_is_given_back():
    k = KernelBuilder("outer", machine("avx2"))
    k.scratch("f32", 16)
    for elements in (100, 40):
        with k.passing_scratch():
            assert k.scratch("f32", elements).position == 64
    assert k.scratch("f32", 1).position == 64
    assert k.finish().scratch_bytes == 64 + 400
