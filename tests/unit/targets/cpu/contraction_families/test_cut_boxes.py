"""Boxes of some channels at a time, beside a filter that is fed: where all channels of few rows are more than a box may
take, the sums of many rows wait in scratch while it goes on."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, f64
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.analysis import box_blocks, image_box
from fuseline.analysis.cut_boxes import SUMS_BYTES
from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.isa import machine
from tests.draws import RNG
from tests.graphs.program import Program, Size, dims_map
from tests.kernels import Runner, assert_close, plan_of, random

from .test_boxed_rows import Case
from .test_convolution import convolve, maps_of


@pytest.fixture
def small_boxes(monkeypatch: pytest.MonkeyPatch) -> int:
    """Boxes may take so little that few channels fill them, whatever they have for rows."""
    most = int(RNG.integers(16, 30)) << 10
    monkeypatch.setattr(image_box, "BOX_BYTES", most)
    monkeypatch.setattr(box_blocks, "LEAST_ROWS_OF_CUT", 1)
    return most


CASES = {
    "a line": Case((300,), (3,), (70, 9), fed=True),
    "an image": Case((20, 19), (3, 3), (65, 20), fed=True),
    "some channels are left": Case((17, 40), (3, 2), (83, 5), fed=True),
    "padded": Case((18, 18), (3, 3), (64, 17), pad=(1, 1), fed=True),
    "padded with a number": Case((18, 18), (3, 3), (64, 17), pad=(1, 0), value=0.5, around=True, fed=True),
    "steps": Case((21, 21), (3, 3), (96, 24), stride=2, pad=(1, 1), fed=True),
    "apart": Case((14, 17), (3, 3), (80, 7), dilation=2, fed=True),
    "channels first": Case((20, 31), (3, 3), (66, 16), first=True, fed=True),
    "several images": Case((18, 18), (3, 3), (72, 40), batch=3, fed=True),
    "f64": Case((12, 15), (3, 3), (50, 20), element=f64, fed=True),
    "volumes": Case((2, 13, 15), (2, 3, 2), (40, 6), fed=True),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("small_boxes")
def test_an_image_of_many_channels(name: str):
    run = CASES[name].run(evaluated=name in ("a line", "some channels are left"))
    assert isinstance(run.plan, ContractionPlan) and run.plan.cut is not None and run.plan.loops.box is not None
    window = run.plan.loops.box.window
    assert all(window[axis.inner] == steps for axis, steps in run.plan.cut.steps.items())


@pytest.mark.usefixtures("small_boxes")
def test_random_images():
    for _ in range(6):
        rank = int(RNG.integers(1, 3))
        image = tuple(int(n) for n in RNG.integers(*((200, 400) if rank == 1 else (12, 28)), rank))
        window = (*[int(n) for n in RNG.integers(1, 4, rank - 1)], int(RNG.integers(2, 5)))
        case = Case(
            image, window, (int(RNG.integers(20, 130)), int(RNG.integers(1, 70))), stride=int(RNG.integers(1, 3)),
            dilation=int(RNG.integers(1, 3)), pad=tuple(int(n) for n in RNG.integers(0, 3, 2)),  # pyright: ignore[reportArgumentType]
            batch=int(RNG.integers(1, 3)), first=bool(RNG.integers(2)), fed=True,
        )  # fmt: skip
        case.run()


@pytest.mark.parametrize("named", [(0,), (1,), (0, 1)])
@pytest.mark.usefixtures("small_boxes")
def test_sizes_that_only_the_run_knows(named: tuple[int, ...]):
    image = (int(RNG.integers(5, 30)), int(RNG.integers(5, 60)))
    run = Case(image, (3, 3), (64, 20), pad=(1, 1), named=named, fed=True).run()
    assert isinstance(run.plan, ContractionPlan) and run.plan.cut is not None


@pytest.mark.parametrize("element", [f32, f64])
def test_rows_across_memory(element: object):
    """As those of a transposed matrix that is converted on the way: squares of it are turned in registers."""
    rows, columns, steps = int(RNG.integers(256, 400)), int(RNG.integers(5, 90)), int(RNG.integers(600, 900))
    p = Program((steps, rows), (steps, columns), element=element)  # pyright: ignore[reportArgumentType]
    maps = [dims_map(3, [2, 0]), dims_map(3, [2, 1]), dims_map(3, [0, 1])]
    y = p.multiply_add(p.relu(p.x[0]), p.x[1], p.zeros(rows, columns), maps, "ppr")
    run = Runner(ContractionFamily(), p.dispatch(y))
    dtype = "float32" if element == f32 else "float64"
    a, b = random((steps, rows), 1, dtype), random((steps, columns), 2, dtype)
    assert_close(run(a, b, parts=2)[0], a.clip(0).T @ b, bits=14)
    assert isinstance(run.plan, ContractionPlan) and run.plan.lhs_mode == "boxed" and run.plan.cut is not None


@pytest.mark.parametrize("named", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("computed", [(True, False), (True, True)])
def test_windows_that_only_the_run_knows(named: tuple[int, ...], computed: tuple[bool, bool]):
    """The pixels of the result are known, and so is the image; the window may be smaller than what surrounds them."""
    channels, filters, out = 16, int(RNG.integers(5, 80)), [int(n) for n in RNG.integers(14, 40, 2)]
    most = [int(n) for n in RNG.integers(2, 6, 2)]
    taps: list[Size] = [f"t{axis}" if axis in named else most[axis] for axis in range(2)]
    image = (1, *(o + k - 1 for o, k in zip(out, most, strict=True)), channels)
    p = Program(image, (*taps, channels, filters))
    x, w = (p.relu(x) if how else x for x, how in zip(p.x, computed, strict=True))
    y = p.multiply_add(x, w, p.zeros(1, *out, filters), maps_of(2, [1, 1], [1, 1]), "pppprrr")
    run = Runner(ConvolutionFamily(), p.dispatch(y))
    assert isinstance(run.plan, ContractionPlan) and run.plan.lhs_mode == "boxed" and run.plan.cut is not None
    for _ in range(3):
        window = [int(RNG.integers(1, k + 1)) if axis in named else k for axis, k in enumerate(most)]
        a, b = random(image, 1), random((*window, channels, filters), 2)
        seen = a[:, : out[0] + window[0] - 1, : out[1] + window[1] - 1].clip(0)
        wanted = convolve(seen, b.clip(0) if computed[1] else b, (1, 1), (1, 1))
        assert_close(run(a, b, sizes={f"t{axis}": window[axis] for axis in named}, parts=2)[0], wanted, least=1.0)


@pytest.mark.parametrize("named", [(), (0,), (1,)])
def test_gradients_of_weights(named: tuple[int, ...]):
    """Their window is an image, their pixels the taps, of which each block has a line with all channels."""
    taps, channels, filters = (int(n) for n in RNG.integers((3, 64, 5), (5, 120, 60)))
    pixels = [int(n) for n in RNG.integers(50, 100, 2)]
    size: list[Size] = [f"s{axis}" if axis in named else n for axis, n in enumerate(pixels)]
    image: list[Size] = [None if axis in named else n + taps - 1 for axis, n in enumerate(pixels)]
    p = Program((*image, channels), (*size, filters))
    dim = AffineExpr.dimension
    maps = [
        AffineMap(6, 0, (*(dim(i) + dim(i + 4) for i in (0, 1)), dim(2))),
        dims_map(6, [4, 5, 3]), dims_map(6, [3, 0, 1, 2]),
    ]  # fmt: skip
    y = p.multiply_add(p.relu(p.x[0]), p.relu(p.x[1]), p.zeros(filters, taps, taps, channels), maps, "pppprr")
    run = Runner(ConvolutionFamily(), p.dispatch(y))
    a, b = random((*(n + taps - 1 for n in pixels), channels), 1), random((*pixels, filters), 2)
    windows = np.lib.stride_tricks.sliding_window_view(a.clip(0).astype(np.float64), pixels, (0, 1))  # pyright: ignore
    wanted = np.einsum("ijcyx,yxf->fijc", windows, b.clip(0))
    sizes = {f"s{axis}": pixels[axis] for axis in named} | {f"n{axis}": pixels[axis] + taps - 1 for axis in named}
    assert_close(run(a, b, sizes=sizes, parts=2)[0], wanted, least=1.0)
    assert isinstance(run.plan, ContractionPlan) and run.plan.lhs_mode == "boxed" and run.plan.cut is not None


def _view(image: tuple[int, int], channels: int, filters: int) -> DispatchView:
    p = Program((1, *image, channels), (3, 3, channels, filters))
    out = [n - 2 for n in image]
    maps: list[AffineMap] = maps_of(2, [1, 1], [1, 1])
    return p.dispatch(p.multiply_add(p.relu(p.x[0]), p.x[1], p.zeros(1, *out, filters), maps, "pppprrr"))


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_boxes_and_sums_fit_their_scratch(isa: str):
    for _ in range(10):
        image = (int(RNG.integers(20, 300)), int(RNG.integers(34, 600)))
        view = _view(image, int(RNG.integers(300, 1200)), int(RNG.integers(1, 300)))
        plan = plan_of(ConvolutionFamily(), view, machine(isa))
        assert isinstance(plan, ContractionPlan) and plan.lhs_mode == "boxed" and plan.cut is not None
        assert plan.loops.box is not None and plan.loops.box.fits(plan.box_counts)
        rows = plan.blocks.lines * plan.blocks.tiles * plan.tile.rows
        assert rows * plan.blocks.panels * plan.width * 4 <= SUMS_BYTES or rows == plan.tile.rows
