"""Rows a runtime stride apart: their pointers are made outside of the loop over their elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fuseline.targets.cpu.isa import detect, machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.kernel_ir.row_pointers import runtime_rows, strided_rows
from fuseline.targets.cpu.kernel_ir.types import Kernel, MemRef, Operand
from tests.draws import RNG
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


def strided(rows: int, places: Sequence[int], dtypes: Sequence[str], displacement: int) -> Kernel:
    """`y[m][j] = sum over places of x[m][origin + place * stride + j + displacement]` in each of some buffers."""
    k = KernelBuilder("kernel", detect())
    length, stride, origin = k.size(0), k.size(1), k.size(2)
    for m, dtype in enumerate(dtypes):
        x = k.binding(2 * m, dtype, k.add(k.mul(stride, rows), k.add(origin, k.add(length, displacement))))
        y = k.binding(2 * m + 1, dtype, length, writable=True)

        def column(j: Operand, x: MemRef = x, y: MemRef = y, dtype: str = dtype) -> tuple[Operand, ...]:
            total = k.const(0.0, dtype)
            for place in places:
                start = k.add(origin, k.mul(stride, place))
                total = k.add(total, k.load(x, k.add(k.add(start, j), displacement)))
            k.store(y, j, total)
            return ()

        k.loop(0, length, 1, column)
    return k.finish()


@pytest.mark.parametrize("dtypes", [["f32"], ["f64", "f32"]])
def test_strided_rows_are_read_where_they_are(dtypes: list[str]):
    rows = int(RNG.integers(5, 45))
    places = [int(n) for n in RNG.choice(rows, int(RNG.integers(4, min(rows, 16))), replace=False)]
    for order in (places, sorted(places)):
        displacement = int(RNG.integers(0, 5))
        kernel = strided(rows, order, dtypes, displacement)
        length, stride, origin = (int(n) for n in RNG.integers(1, 30, 3))
        arrays: list[np.ndarray] = []
        for dtype in dtypes:
            kind = {"f32": np.float32, "f64": np.float64}[dtype]
            size = stride * rows + origin + length + displacement
            arrays += [RNG.integers(-50, 50, size).astype(kind), np.zeros(length, kind)]
        call(kernel, detect(), arrays, [length, stride, origin])
        for x, y in zip(arrays[::2], arrays[1::2], strict=True):
            starts = [origin + place * stride + displacement for place in order]
            np.testing.assert_array_equal(y, sum(x[start : start + length] for start in starts))


def test_strided_rows_are_counted_from_the_first():
    kernel = strided(20, [2, 3, 4, 9], ["f32"], 0)
    found = strided_rows(kernel.body, runtime_rows(kernel.body))
    assert sorted(row.times for row in found.values()) == [1, 2, 7]
    assert len({row.first for row in found.values()}) == 1
    text = print_llvm([kernel], machine("avx2"))
    assert text.count("freeze i64") == 2  # the bytes of the stride, and three times as many


def test_two_rows_have_a_pointer_each():
    kernel = strided(20, [2, 3], ["f32"], 0)
    assert strided_rows(kernel.body, runtime_rows(kernel.body)) == {}
