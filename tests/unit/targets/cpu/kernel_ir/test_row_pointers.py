"""Rows a runtime stride apart: their pointers are made outside of the loop over their elements."""

from __future__ import annotations

import numpy as np

from fuseline.targets.cpu.isa import detect, machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.kernel_ir.row_pointers import runtime_rows
from fuseline.targets.cpu.kernel_ir.types import Kernel, Operand
from tests.kernels import call


def row_sums(stride: int | None) -> Kernel:
    """`y[j] = x[0, j] + x[1, j] + x[2, j]`, rows `stride` elements apart, or as many as the run says."""
    k = KernelBuilder("kernel", detect())
    n = k.size(0)
    step: Operand = n if stride is None else stride
    x, y = k.binding(0, "f32", k.mul(step, 3)), k.binding(1, "f32", n, writable=True)

    def column(j: Operand) -> tuple[Operand, ...]:
        first, second, third = (k.load(x, k.add(k.mul(step, row), j)) for row in range(3))
        k.store(y, j, k.add(k.add(first, second), third))
        return ()

    k.loop(0, n, 1, column)
    return k.finish()


def test_rows_of_a_runtime_stride_are_found():
    kernel = row_sums(None)
    found = runtime_rows(kernel.body)
    assert [[memory.position for memory in memories] for memories in found.values()] == [[0]]
    assert runtime_rows(row_sums(16).body) == {}


def test_their_pointers_are_made_before_the_loop():
    before, inside = print_llvm([row_sums(None)], machine("avx2")).split("loop", 1)
    assert before.count("getelementptr float, ptr %b0") == 1
    assert inside.count("getelementptr float, ptr %b0") == 2  # the rows that begin at the stride or at 0


def test_rows_are_read_where_they_are():
    rng = np.random.default_rng()
    x, y = rng.standard_normal((3, 21)).astype(np.float32), np.zeros(21, np.float32)
    call(row_sums(None), detect(), [x, y], [21])
    np.testing.assert_array_equal(y, x[0] + x[1] + x[2])
