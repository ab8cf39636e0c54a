"""Gathers of narrow elements, as parts of words: each element is the one asked for, and no page is touched in which
none of them lies."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fuseline.targets.cpu.isa import detect, machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.print_gathers import GATHERS
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.kernel_ir.types import BYTES
from tests.draws import RNG
from tests.kernels import Guarded, call

LANES = 8
DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i16": np.int16, "i8": np.int8, "f32": np.float32,
}  # fmt: skip


def _gathering(dtype: str, stride: int | None, isa: Any, *, masked: bool = False) -> KernelBuilder:
    """Every `stride`-th element from the first size on, 8 of them, or as many as the second size says; None: at places
    that are read."""
    k = KernelBuilder("kernel", isa)
    x, y = k.binding(0, dtype, 512), k.binding(1, dtype, LANES, writable=True)
    places = k.binding(2, "i64", LANES)
    live = k.size(1) if masked else None
    at = k.load(places, 0, LANES) if stride is None else k.lane_indices(k.size(0), stride, LANES)
    k.store(y, 0, k.gather(x, at, active=live))
    return k


def _random(dtype: str, size: int) -> Any:
    return RNG.integers(0, 256, size * BYTES[dtype], np.uint8).view(DTYPES[dtype])


@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("stride", [1, 2, 3, 8, 33, 64, None])
@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_elements_are_those_asked_for_beside_pages_that_may_not_be_touched(
    dtype: str, stride: int | None, at_end: bool
):
    kernel, isa = _gathering(dtype, stride, detect()).finish(), detect()
    for first in range(5):
        count = first + 7 * (stride or 9) + 1  # the last element that is read ends the buffer
        places = np.arange(LANES) * (stride or 9) + first
        places = places if stride is not None else RNG.permutation(places)
        source, out = Guarded.copy(_random(dtype, count), at_end=at_end), np.zeros(LANES, DTYPES[dtype])
        call(kernel, isa, [source.array, out, places.astype(np.int64)], [first, 0])
        np.testing.assert_array_equal(out.view(np.uint8), source.array[places].view(np.uint8))


@pytest.mark.parametrize("active", [0, 1, 5, 8])
@pytest.mark.parametrize("dtype", ["f16", "bf16", "i8"])
def test_lanes_that_are_not_active_are_0_and_not_read(dtype: str, active: int):
    isa = detect()
    kernel = _gathering(dtype, 3, isa, masked=True).finish()
    source, out = Guarded.copy(_random(dtype, max(1, 3 * active)), at_end=True), np.ones(LANES, DTYPES[dtype])
    call(kernel, isa, [source.array, out, np.zeros(LANES, np.int64)], [0, active])
    expected = np.zeros(LANES, DTYPES[dtype])
    expected[:active] = source.array[: 3 * active : 3]
    np.testing.assert_array_equal(out.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("stride", [3, 4, None])
@pytest.mark.parametrize("dtype", ["f16", "i8"])
@pytest.mark.parametrize("name", ["baseline", "avx2", "avx512", "neon"])
def test_words_are_gathered_where_there_is_an_instruction(name: str, dtype: str, stride: int | None):
    isa = machine(name)
    text = print_llvm([_gathering(dtype, stride, isa).finish()], isa)
    assert ("gather.v8i32" in text) == (GATHERS in isa.needs)


@pytest.mark.parametrize(("stride", "shifts"), [(2, 0), (3, 1), (4, 0)])
def test_lanes_whole_words_apart_are_shifted_alike(stride: int, shifts: int):
    text = print_llvm([_gathering("f16", stride, machine("avx2")).finish()], machine("avx2"))
    assert text.count("and <8 x i32>") == shifts and "ptrtoint <8 x ptr>" not in text
