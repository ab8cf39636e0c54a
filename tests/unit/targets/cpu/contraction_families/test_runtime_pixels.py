"""Windows over lines whose length only the run knows: every length, padded and not, in every width of tiles, with each
access checked."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from xdsl.dialects import arith
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.build import dims_map
from fuseline.targets.cpu.families.contraction.runtime_pixels import RuntimePixels, widths_of
from fuseline.targets.cpu.families.window.family import WindowFamily
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from tests.graphs.program import Program
from tests.kernels import Array, Runner, assert_close, kernel_of, plan_of, random

LENGTHS = (*range(1, 27), 33, 40)
CHANNELS, TAPS = 12, 3
KINDS = ["depthwise", "pooling", "plain"]


def window(kind: str) -> DispatchView:
    """A 3 x 3 window over `image[y, x, c]` for 5 lines of `x` pixels: products with a filter, or maxima; `plain`: of an
    image with its border."""
    shape: tuple[int | str, ...] = (5, "x", CHANNELS) if kind != "plain" else (7, "z", CHANNELS)
    p = Program(
        shape,
        (TAPS, TAPS, CHANNELS),
        *(((1, "x"),) if kind == "plain" else ()),
        constants=[1] if kind == "depthwise" else [],
    )
    y, x, c, i, j = (AffineExpr.dimension(n) for n in range(5))
    maps = [AffineMap(5, 0, (y + i, x + j, c)), AffineMap(5, 0, (i, j, c)), dims_map(5, [0, 1, 2])]
    low = 0.0 if kind == "depthwise" else -np.inf
    image = p.x[0] if kind == "plain" else p.pad(p.x[0], [1, 1, 0], [1, 1, 0], low)
    start = p.zeros(5, "x", CHANNELS, value=low)
    if kind == "depthwise":
        return p.dispatch(p.multiply_add(image, p.x[1], start, maps, "ppprr"))
    pooled = p.emit.generic(
        [image, p.x[1]],
        [start],
        maps,
        ["parallel"] * 3 + ["reduction"] * 2,
        lambda b: [b.op(arith.MaximumfOp, b.args[2], b.args[0])],
    )
    return p.dispatch(pooled.results[0])


@cache
def runner(kind: str) -> Runner:
    return Runner(WindowFamily(), window(kind))


def operands(kind: str, length: int) -> list[Array]:
    image = random((5, length, CHANNELS) if kind != "plain" else (7, length + 2, CHANNELS), length)
    return [image, random((TAPS, TAPS, CHANNELS), 1), *([random((1, length), 2)] if kind == "plain" else [])]


def sizes_of(kind: str, length: int) -> dict[str, int]:
    return {"x": length} | ({"z": length + 2} if kind == "plain" else {})


def reference(kind: str, image: Array, weights: Array) -> Array:
    low = 0.0 if kind == "depthwise" else -np.inf
    padded = image if kind == "plain" else np.pad(image, ((1, 1), (1, 1), (0, 0)), constant_values=low)
    windows = sliding_window_view(padded, (TAPS, TAPS), axis=(0, 1))
    return np.einsum("yxcij,ijc->yxc", windows, weights) if kind == "depthwise" else windows.max(axis=(3, 4))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_lines_of_any_length(kind: str, length: int):
    run = runner(kind)
    arrays = operands(kind, length)
    for at_end in (True, False):
        assert_close(run(*arrays, sizes=sizes_of(kind, length), at_end=at_end)[0], reference(kind, *arrays[:2]))


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_no_access_can_leave_its_buffer(kind: str, isa: str):
    target, view = machine(isa), window(kind)
    plan = plan_of(WindowFamily(), view, target)
    kernel = kernel_of(WindowFamily(), plan, target)
    for length in LENGTHS:
        sizes = sizes_of(kind, length)
        assert check_bounds(kernel, [sizes[name] for name in view.size_names], d.evaluate(plan.workgroups, sizes)) == []


@pytest.mark.parametrize("pixels", range(1, 13))
def test_one_width_covers_a_line(pixels: int):
    """The tiles of the width that is taken are as many as cover the line; with few pixels, or none of the widths, each
    is a tile."""
    for length in range(1, 60):
        line = RuntimePixels(KernelBuilder("kernel", machine()), length, pixels)
        used = [tiles for tiles in line.tiles if tiles.count != 0]
        assert len(used) == (0 if line.single else 1)
        assert line.single == (length if length < min(widths_of(pixels)) else 0)
        for tiles in used:
            assert tiles.whole == length // tiles.width and tiles.count == -(-length // tiles.width)
