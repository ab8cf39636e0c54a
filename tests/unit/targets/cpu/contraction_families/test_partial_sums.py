"""Long sums of floats are totals of partial ones: their rounding error is that of short runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from fuseline.targets.cpu.emit.partial_sums import LEAST_STEPS, MOST_STEPS
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.kernel_ir.types import Block, Loop, When
from tests.graphs.program import Program
from tests.kernels import Array, Runner, kernel_of, plan_of, random

from .test_convolution import convolve, maps_of

CONVOLUTION, CONTRACTION = ConvolutionFamily(), ContractionFamily()


def sequential_error(a: Array, w: Array) -> float:
    """The RMS error of sums that run from the first product to the last in f32."""
    products = a.astype(np.float32)[:, :, None] * w[None]
    return rms(np.cumsum(products, axis=1, dtype=np.float32)[:, -1], a.astype(np.float64) @ w)


def rms(found: Array, exact: Array) -> float:
    return float(np.sqrt(((found.astype(np.float64) - exact) ** 2).mean()))


@pytest.mark.parametrize("depth", [768, 1152, 3072, 4099])
def test_a_product_is_as_exact_as_its_partial_sums(depth: int):
    p = Program((14, depth), (depth, 40), constants=[1])
    a, w = np.abs(random((14, depth), 0)), random((depth, 40), 1)  # what a relu leaves: partial sums do not stay near 0
    exact = a.astype(np.float64) @ w
    (found,) = Runner(CONTRACTION, p.dispatch(p.matmul(p.x[0], p.x[1])))(a, w)
    assert rms(found, exact) < 0.75 * sequential_error(a, w) * np.sqrt(MOST_STEPS / depth) + 1e-7 * np.abs(exact).max()


@pytest.mark.parametrize("channels", [64, 300])
def test_a_convolution_too(channels: int):
    p = Program((1, 9, 8, channels), (3, 3, channels, 18), constants=[1])
    a, w = np.abs(random((1, 9, 8, channels), 0)), random((3, 3, channels, 18), 1)
    exact = convolve(a.astype(np.float64), w, (1, 1), (1, 1))
    y = p.multiply_add(p.x[0], p.x[1], p.zeros(1, 7, 6, 18), maps_of(2, (1, 1), (1, 1)), "pppprrr")
    (found,) = Runner(CONVOLUTION, p.dispatch(y))(a, w)
    windows = (
        np.lib.stride_tricks.sliding_window_view(a[0], (3, 3), axis=(0, 1)).transpose(0, 1, 3, 4, 2).reshape(42, -1)
    )
    limit = sequential_error(windows, w.reshape(-1, 18)) * np.sqrt(MOST_STEPS / (9 * channels))
    assert rms(found.reshape(42, 18), exact.reshape(42, 18)) < 0.75 * limit + 1e-7 * np.abs(exact).max()


@pytest.mark.parametrize(("depth", "parts"), [(383, 1), (320, 1), (384, 2), (480, 2), (672, 3), (768, 3), (3072, 12)])
def test_parts_are_of_one_length_where_they_can_be(depth: int, parts: int):
    p = Program((14, depth), (depth, 32), constants=[1])
    plan = plan_of(CONTRACTION, p.dispatch(p.matmul(p.x[0], p.x[1])), machine())
    loops = [(loop.lo, loop.hi) for loop in loops_of(kernel_of(CONTRACTION, plan, machine()).body)]
    assert ((0, parts) in loops) == (parts > 1)
    assert parts == 1 or LEAST_STEPS <= depth // parts < MOST_STEPS


def loops_of(block: Block) -> Iterator[Loop]:
    for op in block.ops:
        inner: Sequence[Block] = (
            [op.body] if isinstance(op, Loop) else [op.then, op.otherwise] if isinstance(op, When) else []
        )
        if isinstance(op, Loop):
            yield op
        for body in inner:
            yield from loops_of(body)


@pytest.mark.parametrize("depth", [1 << 28, 1 << 31, (1 << 31) - 1])
def test_a_sum_of_any_length_is_planned_at_once(depth: int):
    """As many partial sums as it takes, in a loop: neither the plan nor the code grows with their number."""
    p = Program((1, depth), (depth, 8))
    view = p.dispatch(p.matmul(p.x[0], p.x[1]))
    kernel = kernel_of(CONTRACTION, plan_of(CONTRACTION, view, machine("avx2")), machine("avx2"))
    assert len(print_llvm([kernel], machine("avx2"))) < 40_000
