"""Register tiles over narrow integers: by single elements, or two steps at a time, compared with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fuseline.targets.cpu.emit.narrow_microkernel import NarrowReduction, PairReduction
from fuseline.targets.cpu.emit.reduction_axes import ReductionAxis
from fuseline.targets.cpu.isa import Machine, machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Block, Kernel, Loop, Operand, Value
from tests.kernel_ir.evaluate import evaluate
from tests.kernels import Array, call

RNG = np.random.default_rng()
AVX2 = machine("avx2")
EXTENTS = [(1, 1), (1, 2), (3, 5), (2, 8), (1, 33), (4, 64)]
SHAPES = [(1, 1), (3, 2)]


def _numbers(dtype: str, *shape: int) -> Array:
    """All that a product of pairs is exact for: nothing below -2**15 + 1."""
    ends = np.iinfo(dtype)
    return RNG.integers(max(ends.min, -(2**15) + 1), ends.max + 1, shape).astype(dtype)


def _compute(kernel: Kernel, isa: Machine, arrays: Sequence[Array], total: Array, *, native: bool) -> Array:
    buffers = [*(np.ascontiguousarray(array) for array in arrays), total.copy()]
    if native:
        call(kernel, isa, buffers)
    else:
        evaluate(kernel, buffers)
    return buffers[-1]


class Tile:
    """`total[row, column] += a[row] . w[:, column]` over two axes; `first`: where the inner one begins, for columns."""

    def __init__(self, shape: tuple[int, int], extents: tuple[int, int], isa: Machine, first: int = 0) -> None:
        self.shape, self.extents, self.isa, self.first = shape, extents, isa, first
        self.lanes = isa.lanes("i32")
        self.width = shape[1] * self.lanes
        self.steps = extents[1] + first

    def expected(self, a: Array, w: Array, total: Array) -> Array:
        """`a[row, outer, inner]`, `w[outer, step, column]`; wraps around."""
        products = np.einsum("roi,oic->rc", a.astype(np.int64), w[:, self.first :].astype(np.int64))
        return (total + products).astype(np.int32)

    def kernel(self, kind: type[NarrowReduction], dtype: str, per_step: int, taken: int, *, pulled: bool) -> Kernel:
        """Columns of `dtype`: `per_step` elements from one step to the next, `taken` lanes for each vector."""
        rows, vectors = self.shape
        (outer, inner), depth = self.extents, self.extents[0] * self.extents[1]
        whole = -(-self.steps * per_step // (vectors * taken)) * vectors * taken
        k = KernelBuilder("kernel", self.isa)
        a, w = k.binding(0, "i16", rows * depth), k.binding(1, dtype, outer * whole)
        total = k.binding(2, "i32", rows * self.width, writable=True)
        axes = [ReductionAxis(outer, inner, whole), ReductionAxis(inner, 1, per_step, first=self.first)]

        def columns(column: Operand, at: Sequence[Operand], v: int) -> Value:
            assert len(at) == 2
            return k.load(w, k.add(column, v * taken), taken)

        def element(at: Sequence[Operand], row: int) -> Value:
            step = k.sub(k.add(k.mul(at[0], inner), at[1]), self.first)
            return k.load(a, k.add(step, row * depth))

        addresses = None if pulled else [k.address(a, row * depth) for row in range(rows)]
        reduction = kind(k, addresses, axes, columns, self.shape, pulled=element if pulled else None)
        places = [i * self.lanes for i in range(rows * vectors)]
        for i, value in zip(places, reduction.emit([k.load(total, i, self.lanes) for i in places]), strict=True):
            k.store(total, i, value)
        return k.finish()

    def check(self, kernel: Kernel, a: Array, w: Array, stored: Array, *, native: bool = False) -> None:
        total = RNG.integers(-(2**31), 2**31, (self.shape[0], self.width)).astype(np.int32)
        found = _compute(kernel, self.isa, [a, stored], total, native=native)
        np.testing.assert_array_equal(found, self.expected(a, w, total))


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("pulled", [False, True])
@pytest.mark.parametrize("extents", EXTENTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_single_elements(
    shape: tuple[int, int], extents: tuple[int, int], pulled: bool, first: int, dtype: str
) -> None:
    tile = Tile(shape, extents, AVX2, first)
    kernel = tile.kernel(NarrowReduction, _ir(dtype), tile.width, tile.lanes, pulled=pulled)
    a, w = _numbers("int16", shape[0], *extents), _numbers(dtype, extents[0], tile.steps, tile.width)
    tile.check(kernel, a, w, w)


def _in_pairs(w: Array) -> Array:
    """`[outer, pair, column, 2]`; beside the last of an odd number of steps any number at all."""
    outer, steps, width = w.shape
    beside = _numbers(w.dtype.name, outer, steps % 2, width)
    return np.concatenate([w, beside], 1).reshape(outer, -1, 2, width).swapaxes(2, 3)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("first", [0, 4])
@pytest.mark.parametrize("extents", EXTENTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_two_steps_at_a_time(shape: tuple[int, int], extents: tuple[int, int], first: int, dtype: str) -> None:
    """An odd last step counts on its own: neither the row's next element nor what the columns hold beside it does."""
    tile = Tile(shape, extents, AVX2, first)
    kernel = tile.kernel(PairReduction, _ir(dtype), tile.width, 2 * tile.lanes, pulled=False)
    a, w = _numbers("int16", shape[0], *extents), _numbers(dtype, extents[0], tile.steps, tile.width)
    tile.check(kernel, a, w, _in_pairs(w))


@pytest.mark.parametrize("isa", ["avx2", ""])
@pytest.mark.parametrize("kind", [NarrowReduction, PairReduction])
def test_native_code(kind: type[NarrowReduction], isa: str) -> None:
    tile = Tile((3, 2), (2, 11), machine(isa))
    pairs = kind is PairReduction
    kernel = tile.kernel(kind, "i8", tile.width, tile.lanes * (2 if pairs else 1), pulled=False)
    a, w = _numbers("int16", 3, 2, 11), _numbers("int8", 2, 11, tile.width)
    tile.check(kernel, a, w, _in_pairs(w) if pairs else w, native=True)


def _ir(dtype: str) -> str:
    return dtype.replace("int", "i")


def _products(block: Block) -> int:
    """Vector multiplications written out."""
    found = 0
    for op in block.ops:
        inner: Any = op.body if isinstance(op, Loop) else None
        found += _products(inner) if inner is not None else isinstance(op, Value) and op.op in ("mul", "dot_pairs")
    return found


@pytest.mark.parametrize("kind", [NarrowReduction, PairReduction])
def test_long_sums_are_loops(kind: type[NarrowReduction]) -> None:
    """No more code for a longer sum."""
    short, long = (
        Tile((3, 2), (1, depth), AVX2).kernel(
            kind, "i8", 2 * AVX2.lanes("i32"), 8 * (1 + (kind is PairReduction)), pulled=False
        )
        for depth in (64, 512)
    )
    assert 0 < _products(short.body) == _products(long.body)
