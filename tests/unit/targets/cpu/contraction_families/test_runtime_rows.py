"""Lines whose length only the run knows, cut into tall and short tiles: every length, every access, and that few tiles
look for padding."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.build import dims_map
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.kernel import ContractionKernel
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.contraction.runtime_rows import (
    LOW,
    LOW_OF_SHORT,
    NO_END,
    ExactRows,
    Interior,
    PaddedRows,
    common,
    interior_of,
    short_height,
)
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from tests.graphs.program import Program
from tests.kernels import Array, Runner, assert_close, kernel_of, plan_of, random

LENGTHS = (*range(1, 21), 26, 27, 31, 43)
CHANNELS, COLUMNS, TAPS = 3, 20, 5


def product(columns: int = COLUMNS, *, packed: bool = False) -> DispatchView:
    """`relu(a[m, 7] @ b)`; packed: of `relu(a)`, which is computed into scratch."""
    p = Program(("m", 7), (7, columns), constants=[1])
    a = p.relu(p.x[0]) if packed else p.x[0]
    return p.dispatch(p.relu(p.matmul(a, p.x[1])))


def summed_in_blocks() -> DispatchView:
    """`relu(a)[m, k] @ b`, of which only the run knows how many elements are added up."""
    p = Program(("m", "k"), ("k", COLUMNS))
    return p.dispatch(p.relu(p.matmul(p.relu(p.x[0]), p.x[1])))


def image() -> DispatchView:
    """A window of 5 along padded lines, channels apart: `image[c, y, x]`, `filter[t, c, n]`, `out[y, x, n]`."""
    p = Program((CHANNELS, "y", "x"), (TAPS, CHANNELS, COLUMNS), constants=[1])
    source = p.pad(p.x[0], [0, 0, 2], [0, 0, 2])
    y, x, n, t, c = (AffineExpr.dimension(i) for i in range(5))
    maps = [AffineMap(5, 0, (c, y, x + t)), AffineMap(5, 0, (t, c, n)), dims_map(5, [0, 1, 2])]
    return p.dispatch(p.multiply_add(source, p.x[1], p.zeros("y", "x", COLUMNS), maps, "ppprr"))


def convolved(pixels: Array, weights: Array) -> Array:
    windows = sliding_window_view(np.pad(pixels, ((0, 0), (0, 0), (2, 2))), TAPS, axis=2)
    return np.einsum("cyxt,tcn->yxn", windows.astype("f8"), weights.astype("f8")).astype("f4")


@cache
def runner(name: str) -> Runner:
    views = {"product": product, "packed": lambda: product(packed=True), "narrow": lambda: product(3)}
    views["summed in blocks"] = summed_in_blocks
    return Runner(ConvolutionFamily(), image()) if name == "image" else Runner(ContractionFamily(), views[name]())


@pytest.mark.parametrize("m", LENGTHS)
@pytest.mark.parametrize("name", ["product", "packed", "narrow"])
def test_products_of_any_number_of_rows(name: str, m: int):
    run = runner(name)
    a, b = random((m, 7), m), random((7, 3 if name == "narrow" else COLUMNS), 1)
    expected = np.maximum((np.maximum(a, 0) if name == "packed" else a) @ b, 0)
    for parts in (1, 3):
        assert_close(run(a, b, sizes={"m": m}, parts=parts)[0], expected)


@pytest.mark.parametrize("m", LENGTHS)
@pytest.mark.parametrize("k", [1, 7, 700])
def test_sums_of_blocks_of_the_reduction(k: int, m: int):
    run = runner("summed in blocks")
    assert isinstance(run.plan, ContractionPlan) and run.plan.cut is not None
    a, b = random((m, k), m), random((k, COLUMNS), 1)
    for parts in (1, 3):
        found = run(a, b, sizes={"m": m, "k": k}, parts=parts)[0]
        np.testing.assert_allclose(found, np.maximum(np.maximum(a, 0) @ b, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("x", LENGTHS)
@pytest.mark.parametrize("y", [1, 3])
def test_padded_lines_of_any_length(x: int, y: int):
    run = runner("image")
    pixels, weights = random((CHANNELS, y, x), x), random((TAPS, CHANNELS, COLUMNS), 2)
    for at_end in (True, False):
        assert_close(run(pixels, weights, sizes={"x": x, "y": y}, at_end=at_end)[0], convolved(pixels, weights))


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("name", ["product", "packed", "image"])
def test_no_access_can_leave_its_buffer(name: str, isa: str):
    target = machine(isa)
    family, view = (
        (ConvolutionFamily(), image()) if name == "image" else (ContractionFamily(), product(packed=name == "packed"))
    )
    plan = plan_of(family, view, target)
    kernel = kernel_of(family, plan, target)
    for length in LENGTHS:
        sizes = {"m": length} if name != "image" else {"x": length, "y": 2}
        assert check_bounds(kernel, [sizes[size] for size in view.size_names], d.evaluate(plan.workgroups, sizes)) == []


def test_the_interior_is_where_no_tap_leaves_the_image():
    plan = plan_of(ConvolutionFamily(), image(), machine())
    assert isinstance(plan, ContractionPlan)
    rows, height = ContractionKernel(plan, KernelBuilder("kernel", machine())).rows.runtime, plan.tile.rows
    assert isinstance(rows, PaddedRows) and rows.interior is not None
    for x in range(1, 60):
        taps = [
            [tile * height + row + tap - 2 for row in range(height) for tap in range(TAPS)]
            for tile in range(x // height)
        ]
        inside = [tile for tile, found in enumerate(taps) if min(found) >= 0 and max(found) < x]
        end = min(d.evaluate(rows.interior.end, {"x": x}), x // height)
        assert list(range(rows.interior.first, end)) == inside


def test_the_tiles_that_all_bounds_leave_alone():
    n = d.symbol("n")
    assert common([Interior(1, n), Interior(2, 7)]) == Interior(2, d.minimum(n, 7))
    assert interior_of([], 0, {}, 6) == Interior(0, NO_END)


@pytest.mark.parametrize("height", range(1, 33))
def test_two_short_tiles_are_about_a_third_more_than_a_tall_one(height: int):
    short = short_height(height)
    assert height <= 2 * short <= height * 4 / 3 + 2
    assert short <= height


@pytest.mark.parametrize("height", range(1, 33))
def test_each_row_that_whole_tiles_leave_is_in_one_part(height: int):
    kernel = KernelBuilder("kernel", machine())
    for extent in range(3 * height + 1):
        rows = ExactRows(kernel, extent, height)
        assert isinstance(rows.whole, int)
        found = list[int]()
        for part in rows.parts:
            has, before = rows.has(part), rows.larger_parts(part)
            assert isinstance(has, int) and isinstance(before, int)
            found += [rows.whole * height + before + row for row in range(has * part)]
        assert found == list(range(rows.whole * height, extent))
    few = LOW_OF_SHORT if height <= LOW_OF_SHORT else LOW
    assert set(range(1, min(few, height))) <= set(ExactRows(kernel, 0, height).parts)
