"""Operands computed on the way: evaluated once per block of rows, or per panel of columns, into scratch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.analysis.packings import PANELS_PER_PACKING
from fuseline.ir.build import dims_map, identity_map
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.types import Block, Loop, When
from tests.graphs.program import Program
from tests.kernels import Array, assert_close, kernel_of, plan_of, random

from .test_convolution import convolve, maps_of
from .test_segments import check

CONVOLUTION, CONTRACTION = ConvolutionFamily(), ContractionFamily()


def scaled(p: Program, x: SSAValue, scale: SSAValue, axes: Sequence[int], *shape: int) -> SSAValue:
    """`x * scale`, whose dimension `i` is dimension `axes[i]`."""
    rank = len(shape)
    maps = [identity_map(rank), dims_map(rank, list(axes)), identity_map(rank)]
    return p.elementwise([x, scale], p.empty(*shape), lambda b: b.op(arith.MulfOp, b.args[0], b.args[1]), maps)


@pytest.mark.parametrize(("pixels", "channels", "out"), [(49, 96, 300), (35, 20, 24), (8, 3, 5)])
def test_channels_scaled_before_a_convolution_by_1x1(pixels: int, channels: int, out: int):
    """Squeeze and excitation: every pixel's channels times what the whole image gave."""
    p = Program((pixels, channels), (channels,), (channels, out), constants=[2])
    x = scaled(p, p.x[0], p.x[1], [1], pixels, channels)
    a, s, w = (random(shape, i) for i, shape in enumerate(((pixels, channels), (channels,), (channels, out))))
    run = check(CONTRACTION, p, p.matmul(x, p.x[2]), [a, s, w], (a * s).astype(np.float64) @ w, "packed")
    assert isinstance(run.plan, ContractionPlan)
    panels = run.plan.panel_count
    assert isinstance(panels, int)
    assert run.plan.blocks.panels >= min(PANELS_PER_PACKING, panels)


def test_channels_scaled_before_a_convolution_by_3x3():
    p = Program((1, 6, 7, 5), (5,), (3, 3, 5, 18), constants=[2])
    x = p.pad(scaled(p, p.x[0], p.x[1], [3], 1, 6, 7, 5), [0, 1, 1, 0], [0, 1, 1, 0])
    a, s, w = (random(shape, i) for i, shape in enumerate(((1, 6, 7, 5), (5,), (3, 3, 5, 18))))
    expected = convolve(np.pad(a * s, [(0, 0), (1, 1), (1, 1), (0, 0)]), w, (1, 1), (1, 1))
    y = p.multiply_add(x, p.x[2], p.zeros(1, 6, 7, 18), maps_of(2, (1, 1), (1, 1)), "pppprrr")
    check(CONVOLUTION, p, y, [a, s, w], expected, "boxed")


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_rows_of_several_loops_are_packed_as_they_lie(order: tuple[int, ...]):
    """Whatever the order of the summed loops: the one that the operand lies along is the innermost."""
    p = Program((23, 3, 5, 18), (3, 5, 18, 40))
    at = [2 + order.index(axis) for axis in range(3)]
    maps = [dims_map(5, [0, *at]), dims_map(5, [*at, 1]), dims_map(5, [0, 1])]
    y = p.multiply_add(p.relu(p.x[0]), p.x[1], p.zeros(23, 40), maps, "pprrr")
    a, w = random((23, 3, 5, 18), 1), random((3, 5, 18, 40), 2)
    expected = np.maximum(a, 0).reshape(23, -1).astype(np.float64) @ w.reshape(-1, 40)
    run = check(CONTRACTION, p, y, [a, w], expected, "packed")
    assert isinstance(run.plan, ContractionPlan)
    assert [loop for axis in run.plan.loops.reduction for loop in axis.loops] == at


def rotated(p: Program, x: SSAValue, tables: tuple[SSAValue, SSAValue], heads: int, rows: int, size: int) -> SSAValue:
    """Rotary embedding of `x[heads, rows, size]`: `x * cos + concat(-x[half:], x[:half]) * sin`."""
    half, shape = size // 2, (heads, rows, size)
    upper = p.slice(x, [0, 0, half], [heads, rows, half])
    minus = p.elementwise(
        [upper], p.empty(heads, rows, half), lambda b: b.op(arith.NegfOp, b.args[0]), [identity_map(3)] * 2
    )
    turned = p.concat(minus, p.slice(x, [0, 0, 0], [heads, rows, half]), axis=2)
    return p.add(scaled(p, x, tables[0], [1, 2], *shape), scaled(p, turned, tables[1], [1, 2], *shape))


def rotate(x: Array, cos: Array, sin: Array) -> Array:
    """`rotated` by NumPy."""
    half = x.shape[-1] // 2
    return x * cos + np.concatenate([-x[..., half:], x[..., :half]], axis=-1) * sin


def scores(p: Program, q: SSAValue, k: SSAValue, heads: int, rows: int, columns: int) -> SSAValue:
    """`q[h, i, d] @ k[h, j, d]`."""
    maps = [dims_map(4, [0, 1, 3]), dims_map(4, [0, 2, 3]), dims_map(4, [0, 1, 2])]
    return p.multiply_add(q, k, p.zeros(heads, rows, columns), maps, "pppr")


@pytest.mark.parametrize(("rows", "size"), [(37, 32), (5, 64), (21, 20), (9, 6)])
def test_rotary_embedding_on_both_sides(rows: int, size: int):
    heads = 3
    p = Program((heads, rows, size), (heads, rows, size), (rows, size), (rows, size))
    tables = (p.x[2], p.x[3])
    q, k = (rotated(p, x, tables, heads, rows, size) for x in p.x[:2])
    a, b, cos, sin = (random(shape, i) for i, shape in enumerate([(heads, rows, size)] * 2 + [(rows, size)] * 2))
    expected = rotate(a, cos, sin).astype(np.float64) @ rotate(b, cos, sin).transpose(0, 2, 1)
    run = check(CONTRACTION, p, scores(p, q, k, heads, rows, rows), [a, b, cos, sin], expected, "packed")
    assert run.plan.notes["rhs"] == "packed"


@pytest.mark.parametrize("count", [2, 12])
def test_loops_cut_at_the_parts_of_a_concat_need_no_conditions(count: int):
    """Every piece of the packing loop reads one part: no branch is left in the kernel beside those at the ends of
    tiles."""
    p = Program(*[(24, 64)] * count, (32 * count, 32), constants=[count])
    halves = [p.slice(p.x[i], [0, 32 * (i % 2)], [24, 32]) for i in range(count)]
    minus = p.elementwise([halves[0]], p.empty(24, 32), lambda b: b.op(arith.NegfOp, b.args[0]), [identity_map(2)] * 2)
    view = p.dispatch(p.matmul(p.concat(minus, *halves[1:], axis=1), p.x[count]))
    plan = plan_of(CONTRACTION, view, machine())
    assert plan.notes["lhs"] == "packed"
    branches = [op for op in _walk(kernel_of(CONTRACTION, plan, machine()).body) if isinstance(op, When)]
    assert not branches


def _walk(block: Block) -> Iterator[object]:
    for op in block.ops:
        yield op
        for inner in [op.body] if isinstance(op, Loop) else [op.then, op.otherwise] if isinstance(op, When) else []:
            yield from _walk(inner)


# slices of one buffer -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 7, 40])
def test_queries_and_keys_that_are_slices_of_one_projection(rows: int):
    """`qkv[rows, 3 * heads * size]` cut in three, split into heads and transposed: addresses only."""
    heads, size = 3, 16
    width = heads * size
    p = Program((rows, 3 * width))

    def part(i: int) -> SSAValue:
        cut = p.slice(p.x[0], [0, i * width], [rows, width])
        return p.moved(p.expand(cut, rows, heads, size, groups=[[0], [1, 2]]), [1, 0, 2], heads, rows, size)

    a = random((rows, 3 * width), 1)
    q, k, _ = (
        a[:, i * width : (i + 1) * width].reshape(rows, heads, size).transpose(1, 0, 2).astype(np.float64)
        for i in range(3)
    )
    check(CONTRACTION, p, scores(p, part(0), part(1), heads, rows, rows), [a], q @ k.transpose(0, 2, 1), "linear")


def test_a_scaled_slice_is_packed():
    """The scale of the scores moved to the queries."""
    heads, rows, size = 2, 19, 8
    p = Program((rows, 3 * heads * size))
    parts = [p.slice(p.x[0], [0, i * heads * size], [rows, heads * size]) for i in range(2)]
    q, k = (p.moved(p.expand(x, rows, heads, size, groups=[[0], [1, 2]]), [1, 0, 2], heads, rows, size) for x in parts)
    half = p.elementwise(
        [q],
        p.empty(heads, rows, size),
        lambda b: b.op(arith.MulfOp, b.args[0], b.constant(0.5, p.element)),
        [identity_map(3)] * 2,
    )
    a = random((rows, 3 * heads * size), 1)
    x, y = (
        a[:, i * 16 : (i + 1) * 16].reshape(rows, heads, size).transpose(1, 0, 2).astype(np.float64) for i in range(2)
    )
    check(CONTRACTION, p, scores(p, half, k, heads, rows, rows), [a], 0.5 * x @ y.transpose(0, 2, 1), "packed")


def test_values_that_are_a_slice():
    """`probabilities[h, i, j] @ v[h, j, d]`, written head by head into one row."""
    heads, rows, size = 2, 11, 24
    width = heads * size
    p = Program((heads, rows, rows), (rows, 3 * width))
    cut = p.expand(p.slice(p.x[1], [0, 2 * width], [rows, width]), rows, heads, size, groups=[[0], [1, 2]])
    maps = [dims_map(4, [1, 0, 3]), dims_map(4, [3, 1, 2]), dims_map(4, [0, 1, 2])]
    y = p.multiply_add(p.x[0], cut, p.zeros(rows, heads, size), maps, "pppr")
    a, b = random((heads, rows, rows), 1), random((rows, 3 * width), 2)
    v = b[:, 2 * width :].reshape(rows, heads, size).transpose(1, 0, 2).astype(np.float64)
    check(CONTRACTION, p, y, [a, b], (a @ v).transpose(1, 0, 2), "linear")


def test_a_concat_that_is_evaluated_in_odd_parts():
    """Parts of 5 and 14 of 19 steps: pieces end in masked vectors."""
    p = Program((13, 5), (13, 14), (19, 21), constants=[2])
    parts = [p.relu(p.x[0]), p.x[1]]
    a, b, w = (random(shape, i) for i, shape in enumerate(((13, 5), (13, 14), (19, 21))))
    expected = np.concatenate([np.maximum(a, 0), b], axis=1).astype(np.float64) @ w
    run = check(CONTRACTION, p, p.matmul(p.concat(*parts, axis=1), p.x[2]), [a, b, w], expected, "packed")
    assert_close(run.evaluated(a, b, w)[0], expected)
