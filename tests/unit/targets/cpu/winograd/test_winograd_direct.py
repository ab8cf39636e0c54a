"""Tiles that are computed directly after all, alone: every pixel of a tile from the image and the filter as it is."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.targets.cpu.families.winograd.direct import DirectTile
from fuseline.targets.cpu.families.winograd.kernel import WinogradKernel
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from tests.kernel_ir.evaluate import evaluate
from tests.kernels import Array, assert_close, packed, plan_of

from .convolutions import Case, Forced

AVX2 = machine("avx2")
CASES = {
    "square": Case((8, 8), (8, 16), epilogue=False),
    "tails of channels and columns": Case((9, 6), (11, 13), epilogue=False),
    "more channels than a piece": Case((4, 8), (72, 8), epilogue=False),
    "several passes": Case((6, 5), (5, 40), epilogue=False),
    "batch": Case((4, 6), (8, 8), batch=2, epilogue=False),
    "one dimension": Case((19,), (12, 20), epilogue=False),
    "five taps": Case((7, 9), (8, 8), taps=5, pad=(2, 2), epilogue=False),
    "no padding": Case((9, 8), (8, 16), pad=(0, 0), epilogue=False),
}


class Tiles:
    """One tile and one pass of a convolution, computed again behind a witness."""

    def __init__(self, case: Case, outputs: int) -> None:
        plan = plan_of(Forced(outputs, tiles=2, columns=16), case.view, AVX2)
        assert isinstance(plan, WinogradPlan)
        self.case, self.plan, self.lanes = case, plan, plan.lanes
        (self.layout,) = plan.constant_layouts.values()
        self.pixels = plan.blocking.outputs * plan.pass_width
        self.image, self.filter = case.arrays()[:2]

    def run(self, tile: int, number: int, witness: Array) -> tuple[Array, Array]:
        """`[output, column]` before and after."""
        k, bindings = KernelBuilder("kernel", AVX2), len(self.plan.view.tensors)
        whole = WinogradKernel(self.plan, k)
        pixels = k.binding(bindings, "f32", self.pixels, writable=True)
        sums = k.load(k.binding(bindings + 1, "f32", self.lanes), 0, self.lanes)
        DirectTile(self.plan, whole.reader, whole.filter, pixels).replace(tile, number, sums)
        before = np.random.default_rng().standard_normal(self.pixels).astype(np.float32)
        after = before.copy()
        others = [np.zeros(0, np.float32)] * (bindings - 2)
        evaluate(k.finish(), [self.image, packed(self.filter, self.layout), *others, after, witness])
        shape = (self.plan.blocking.outputs, self.plan.pass_width)
        return before.reshape(shape), after.reshape(shape)

    def expected(self, tile: int, number: int) -> Array:
        """The pixels of a tile that exist, and NaN for others; columns beyond the last are 0."""
        axes, width = self.plan.blocking.axes, self.plan.pass_width
        whole = self.case.expected(self.image, self.filter, np.zeros(1), np.zeros(1))
        columns = self.plan.pass_count * width
        room = [-(-size // axis.outputs) * axis.outputs for size, axis in zip(whole.shape[1:-1], axes, strict=True)]
        found = np.zeros((whole.shape[0], *room, columns))
        for axis, size in enumerate(whole.shape[1:-1]):
            beyond = [slice(None)] * found.ndim
            beyond[axis + 1] = slice(size, None)
            found[tuple(beyond)] = np.nan
        found[tuple(slice(0, size) for size in whole.shape)] = whole
        grid = [whole.shape[0], *(size // axis.outputs for size, axis in zip(room, axes, strict=True))]
        batch, *origin = np.unravel_index(tile, grid)
        box = [slice(o * axis.outputs, (o + 1) * axis.outputs) for o, axis in zip(origin, axes, strict=True)]
        return found[batch, *box, number * width : (number + 1) * width].reshape(-1, width)


@pytest.mark.parametrize(("outputs", "value"), [(2, np.nan), (4, -np.inf)])
@pytest.mark.parametrize("name", CASES)
def test_a_tile_is_computed_again(name: str, outputs: int, value: float) -> None:
    """Whichever lane of the witness is not finite; the first and the last tile and pass, and any other."""
    tiles, generator = Tiles(CASES[name], outputs), np.random.default_rng()
    count, passes = tiles.plan.tile_count, tiles.plan.pass_count
    assert isinstance(count, int)
    for tile, number in ((0, 0), (count - 1, passes - 1), (generator.integers(count), generator.integers(passes))):
        witness = generator.standard_normal(tiles.lanes).astype(np.float32)
        witness[generator.integers(tiles.lanes)] = value
        _, after = tiles.run(int(tile), int(number), witness)
        expected = tiles.expected(int(tile), int(number))
        exist = ~np.isnan(expected)
        assert_close(after[exist], expected[exist], bits=16, least=1.0)


@pytest.mark.parametrize("name", ["square", "one dimension"])
def test_a_tile_whose_witness_is_finite_stays(name: str) -> None:
    tiles = Tiles(CASES[name], 4)
    before, after = tiles.run(0, 0, np.full(tiles.lanes, 3e38, np.float32))  # their sum would be infinite
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_pixel_reaches_the_windows_that_cover_it(value: float) -> None:
    tiles = Tiles(CASES["no padding"], 4)
    tiles.image[0, 2, 2, 3] = value
    after = tiles.run(0, 0, np.full(tiles.lanes, np.nan, np.float32))[1].reshape(4, 4, -1)
    assert not np.isfinite(after[:3, :3]).any() and np.isfinite(after[3]).all() and np.isfinite(after[:, 3]).all()
