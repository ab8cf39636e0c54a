"""What window kernels keep in scratch: copies of the image with its padding, filters that only the run knows; and how
the places of taps are told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import dims_map
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.families.window.copied_rows import StoredRows
from fuseline.targets.cpu.families.window.copies import CopiedWindowPlan
from fuseline.targets.cpu.families.window.filter_reader import FilterReader
from fuseline.targets.cpu.families.window.groups import grouped_window_loops, plan_groups
from fuseline.targets.cpu.families.window.image_copy import ImageCopy
from fuseline.targets.cpu.families.window.image_reader import ImageReader, int_stride
from fuseline.targets.cpu.families.window.loops import window_loops
from fuseline.targets.cpu.families.window.plan import WindowPlan, plan_window
from fuseline.targets.cpu.families.window.staged_filter import StagedFilter
from fuseline.targets.cpu.families.window.tile import Tile
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef
from fuseline.targets.target import Refusal
from tests.graphs.program import Program
from tests.kernel_ir.evaluate import evaluate
from tests.kernels import arrays_for

AVX2 = machine("avx2")
dim = AffineExpr.dimension
SLIDING = AffineMap(5, 0, (dim(0) + dim(3), dim(1) + dim(4), dim(2)))


def _depthwise(*, pad: int = 0, computed: bool = False, constant: bool = False) -> tuple[DispatchView, WindowPlan]:
    """`out[h, w, c] = sum over i, j of x[h + i - pad, w + j - pad, c] * f[i, j, c]`."""
    p = Program((6, 7, 13), (3, 3, 13), constants=[1] if constant else [])
    image = p.pad(p.x[0], [pad, pad, 0], [pad, pad, 0]) if pad else p.x[0]
    weights = p.unary(p.x[1]) if computed else p.x[1]
    out = p.zeros(4 + 2 * pad, 5 + 2 * pad, 13)
    view = p.dispatch(
        p.multiply_add(image, weights, out, [SLIDING, dims_map(5, [3, 4, 2]), dims_map(5, [0, 1, 2])], "ppprr")
    )
    loops = window_loops(view)
    assert not isinstance(loops, Refusal)
    plan = plan_window(loops, AVX2)
    assert not isinstance(plan, Refusal)
    return view, plan


def _dumped(k: KernelBuilder, memory: MemRef, arrays: list[Any]) -> Any:
    """What lies in a buffer of scratch at the end."""
    assert isinstance(memory.extent, int)
    out = k.binding(len(arrays), "f32", memory.extent, writable=True)
    k.loop(0, memory.extent, 1, lambda i: k.store(out, i, k.load(memory, i)) or ())
    found = np.zeros(memory.extent, np.float32)
    evaluate(k.finish(), [*arrays, found])
    return found


def _copied(padding: int) -> CopiedWindowPlan:
    """Groups of 4 channels, 8 of them, in a window of 3 x 3."""
    p = Program((5, 7, 8, 4), (3, 3, 4, 8, 4), constants=[1])
    image = p.pad(p.x[0], [padding, padding, 0, 0], [padding, padding, 0, 0]) if padding else p.x[0]
    maps = [
        AffineMap(7, 0, (dim(0) + dim(4), dim(1) + dim(5), dim(2), dim(6))),
        dims_map(7, [4, 5, 6, 2, 3]),
        dims_map(7, [0, 1, 2, 3]),
    ]
    out = p.zeros(3 + 2 * padding, 5 + 2 * padding, 8, 4)
    loops = grouped_window_loops(p.dispatch(p.multiply_add(image, p.x[1], out, maps, "pppprrr")))
    assert not isinstance(loops, Refusal)
    plan = plan_groups(loops, AVX2)
    assert not isinstance(plan, Refusal)
    return plan


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("first", [0, 1])
def test_the_image_is_copied_with_its_padding(padding: int, first: int) -> None:
    plan = _copied(padding)
    k = KernelBuilder("k", AVX2)
    buffers = BodyEmitter(k, plan.view).buffers
    copy = ImageCopy(plan, buffers, StoredRows(buffers, plan.loops.images[0].access, (plan.rows, plan.columns)))
    channels = plan.pitch
    copy.fill({}, (first, 1), (0, plan.strip_pixels), 0, channels)
    arrays = arrays_for(plan.view)
    found = _dumped(k, copy.memory, arrays)
    image = np.pad(arrays[0].reshape(5, 7, 32), [(padding, padding), (padding, padding), (0, 0)])
    rows = found[: 3 * plan.row_columns * plan.pitch].reshape(3, plan.row_columns, plan.pitch)
    columns = min(plan.row_columns, image.shape[1])
    np.testing.assert_array_equal(rows[:, :columns, :channels], image[first : first + 3, :columns, :channels])


def test_a_filter_is_staged_panel_by_panel() -> None:
    view, plan = _depthwise(computed=True)
    k = KernelBuilder("k", AVX2)
    staged = StagedFilter(plan, BodyEmitter(k, view))
    panels = -(-13 // plan.width)
    staged.fill({}, (0, panels))
    arrays = arrays_for(view)
    found = _dumped(k, staged.memory, arrays).reshape(-1, 3, 3, plan.width)
    weights = np.exp(arrays[1])
    for panel in range(min(panels, len(found))):
        part = weights[:, :, panel * plan.width : (panel + 1) * plan.width]
        np.testing.assert_allclose(found[panel][:, :, : part.shape[-1]], part, rtol=1e-5)
    assert [staged.base(panel) for panel in range(2)] == [0, 9 * plan.width]


@pytest.mark.parametrize(("computed", "constant"), [(False, False), (False, True), (True, False)])
def test_how_a_filter_is_walked(computed: bool, constant: bool) -> None:
    view, plan = _depthwise(computed=computed, constant=constant)
    reader = FilterReader(plan, BodyEmitter(KernelBuilder("k", AVX2), view))
    assert reader.memory is not None and (reader.staged is not None) == plan.stages_filter == computed
    strides = [reader.stride(axis) for axis in plan.loops.filter_axes]
    assert strides == ([39, 13] if not (computed or constant) else [3 * plan.width, plan.width])


@pytest.mark.parametrize("pad", [0, 1])
def test_places_of_taps(pad: int) -> None:
    view, plan = _depthwise(pad=pad)
    k = KernelBuilder("k", AVX2)
    buffers = BodyEmitter(k, view).buffers
    reader = ImageReader(plan, buffers, lambda image: buffers.argument(image.access.source))
    access = plan.loops.images[0].access
    assert (
        int_stride(access, plan.loops.pixel) == int_stride(access, plan.loops.across) == 13
        and int_stride(access, None) == 0
    )
    # neighbours read the same column where pixel and tap add up to the same
    places = {(pixel, tap): reader.place(access, pixel, tap) for pixel in range(3) for tap in range(3)}
    for (pixel, tap), found in places.items():
        assert (
            found[0] == 13 * (pixel + tap) and found == places[min(2, pixel + tap), pixel + tap - min(2, pixel + tap)]
        )
    assert (reader.padding_row is not None) == bool(pad) == any(reader.moves(bound) for bound in access.bounds)


def test_a_tile_is_changed_in_part() -> None:
    _, plan = _depthwise()
    tile = Tile({}, 3, 4, None, plan.loops.images[0])
    other = tile.of(start=5, first=2)
    assert (other.start, other.first, other.pixels, other.image) == (5, 2, 4, tile.image) and tile.start == 3
