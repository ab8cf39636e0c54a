"""Packed layouts against an index-by-index reading, and the transpose in registers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseline.targets.cpu.emit.packing import packed_columns
from fuseline.targets.cpu.emit.squares import transpose
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from tests.kernels import native, packed


@given(
    st.permutations([0, 1, 2]),
    st.integers(1, 5),
    st.integers(1, 40),
    st.integers(1, 6),
    st.sampled_from([4, 8, 16, 24]),
)
def test_elements_lie_where_the_strides_say(order: list[int], groups: int, columns: int, steps: int, width: int):
    """Loops: 0 the group, 1 the column, 2 the reduction; the constant's dimensions come in any order."""
    sizes = (groups, columns, steps)
    array = np.arange(groups * columns * steps, dtype=np.float32).reshape([sizes[i] for i in order]) + 1
    layout = packed_columns(array.shape, order, 1, (0,), (2,), width)
    flat = packed(array, layout.layout).reshape(-1)
    assert flat.size == layout.elements
    rng = np.random.default_rng(groups)
    for _ in range(10):
        g, n, k = (int(rng.integers(size)) for size in sizes)
        at = g * layout.strides[0] + (n // width) * layout.panel_stride + k * layout.strides[2] + n % width
        assert flat[at] == array[tuple((g, n, k)[i] for i in order)]


@pytest.mark.parametrize("isa", ["avx2", "baseline"])
def test_transpose_in_registers(isa: str):
    target = machine(isa)
    lanes = target.lanes("f32")
    k = KernelBuilder("turn", target)
    x, y = k.binding(0, "f32", lanes * lanes), k.binding(1, "f32", lanes * lanes, writable=True)
    for i, row in enumerate(transpose(k, [k.load(x, i * lanes, lanes) for i in range(lanes)])):
        k.store(y, i * lanes, row)
    import ctypes

    a = np.random.default_rng(0).standard_normal((lanes, lanes)).astype(np.float32)
    out = np.empty_like(a)
    pointers = (ctypes.c_void_p * 2)(a.ctypes.data, out.ctypes.data)
    native(k.finish(), target)(pointers, None, 0, 1, None)
    np.testing.assert_array_equal(out, a.T)
