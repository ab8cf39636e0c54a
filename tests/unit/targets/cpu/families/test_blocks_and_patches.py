"""Parts of larger kernels alone: the entry function of a block, and the patch of a tile of minimal filtering."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.dispatch.view import DispatchView
from fuseline.evaluation import evaluate_function
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.families.blocked.dispatch import blocked_dispatch
from fuseline.targets.cpu.families.blocked.entry import ResultTarget, SubKernelWriter
from fuseline.targets.cpu.families.blocked.sub_kernels import sub_kernels_of
from fuseline.targets.cpu.families.blocked.tiles import Tile, Tiling
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan
from fuseline.targets.cpu.families.winograd.tiles import TileReader
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from tests.graphs.program import Program
from tests.kernel_ir.evaluate import evaluate
from tests.kernels import arrays_for
from tests.unit.targets.cpu.winograd.convolutions import Case, Forced

ROWS, SIZE = 10, 4


@pytest.mark.parametrize("block", [0, 1, 2])
def test_a_block_is_a_function_of_its_own(block: int) -> None:
    """Both products of `relu(a @ b) @ c`, on four rows at a time; the last block has two."""
    p = Program((ROWS, 6), (6, 5), (5, 3))
    middle = p.relu(p.matmul(p.x[0], p.x[1]))
    last = p.matmul(middle, p.x[2])
    view = p.dispatch(last)
    dispatch = blocked_dispatch(view)
    (axis,) = dispatch.grid
    tiling = Tiling(dispatch, {axis: Tile(ROWS, SIZE, "block_0", "extent_0")})
    first, second = sub_kernels_of(dispatch)
    a, b, c = arrays_for(view)
    lo, hi = block * SIZE, min(ROWS, (block + 1) * SIZE)
    sizes = {"block_0": block, "extent_0": hi - lo}
    whole = np.maximum(a.astype(np.float64) @ b, 0)
    for sub, value, given, expected in (
        (first, middle, {p.x[0]: a, p.x[1]: b}, whole[lo:hi]),
        (second, last, {middle: whole[lo:hi].astype(np.float32), p.x[2]: c}, whole[lo:hi] @ c),
    ):
        writer = SubKernelWriter(tiling, sub.members, set(), set())
        made = writer.write("part", sub.members, [ResultTarget(value)])
        made.entry.verify()
        part = DispatchView(made.entry)
        assert made.entry.sym_name.data == "part" and set(made.arguments) <= set(given)
        arguments: list[Any] = [given[argument] for argument in made.arguments]
        (found,) = evaluate_function(made.entry, [*arguments, *(np.asarray(sizes[name]) for name in part.size_names)])
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("number", [0, 1, 5])
@pytest.mark.parametrize(("image", "channels"), [((6, 6), 8), ((5, 7), 13)])
def test_a_patch_holds_the_pixels_of_its_tile(image: tuple[int, int], channels: int, number: int) -> None:
    """With zeros around the image and behind the last channel."""
    view = Case(image, (channels, 16)).view
    plan = Forced(outputs=2, tiles=3).accepts(view, machine("avx2"))
    assert isinstance(plan, WinogradPlan)
    k = KernelBuilder("k", machine("avx2"))
    reader = TileReader(plan, BodyEmitter(k, view))
    count = min(plan.vectors, plan.piece)
    origin = reader.place(number)
    reader.fill(origin, 0, count)
    arrays, extent = arrays_for(view), reader.patch.extent
    assert isinstance(extent, int)
    out = k.binding(len(arrays), "f32", extent, writable=True)
    k.loop(0, extent, 1, lambda i: k.store(out, i, k.load(reader.patch, i)) or ())
    found = np.zeros(extent, np.float32)
    evaluate(k.finish(), [*arrays, found])
    rows, columns = (axis.size for axis in plan.blocking.axes)
    tiles_across = -(-image[1] // plan.blocking.axes[1].outputs)
    top, left = (at * axis.outputs for at, axis in zip(divmod(number, tiles_across), plan.blocking.axes, strict=True))
    assert [origin.origin[0], origin.origin[1]] == [top, left]
    padded = np.pad(arrays[0].reshape(*image, channels), [(1, rows), (1, columns), (0, count * plan.lanes)])
    patch = found.reshape(rows, columns, -1)[:, :, : count * plan.lanes]
    expected = padded[top : top + rows, left : left + columns, : count * plan.lanes]
    inside = [
        max(0, min(size + 2 - at, extent)) for size, at, extent in zip(image, (top, left), (rows, columns), strict=True)
    ]
    np.testing.assert_array_equal(patch[: inside[0], : inside[1]], expected[: inside[0], : inside[1]])
