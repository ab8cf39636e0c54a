"""Kernels of minimal filtering against NumPy in float64; buffers end at unreadable pages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuseline.ir import dim as d
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan
from fuseline.targets.cpu.isa import machine
from tests.graphs.program import Program
from tests.kernels import Runner, assert_close, random
from tests.unit.targets.cpu.contraction_families.test_convolution import convolve, maps_of

from .convolutions import Case, Forced, padded

CASES = {
    "square": Case((14, 14), (16, 32)),
    "odd sizes": Case((13, 9), (24, 40)),
    "one tile": Case((4, 4), (8, 16)),
    "no padding": Case((11, 10), (16, 24), pad=(0, 0)),
    "padded at the end only": Case((10, 12), (8, 16), pad=(0, 2)),
    "wide padding": Case((5, 5), (8, 16), pad=(4, 3)),
    "tails of channels and columns": Case((9, 9), (11, 13)),
    "many channels": Case((6, 7), (140, 100)),
    "few channels": Case((12, 12), (3, 5)),
    "batch": Case((7, 6), (16, 16), batch=3),
    "one dimension": Case((50,), (12, 20)),
    "one dimension, five taps": Case((37,), (16, 24), taps=5, pad=(2, 2)),
    "five taps": Case((11, 12), (16, 24), taps=5, pad=(2, 2)),
    "two taps": Case((9, 8), (16, 24), taps=2, pad=(1, 0)),
}


@pytest.mark.parametrize("outputs", [2, 4])
@pytest.mark.parametrize("name", CASES)
def test_channels_last(name: str, outputs: int):
    CASES[name].check(Forced(outputs))


@pytest.mark.parametrize("outputs", [3, 6, 8])
def test_larger_tiles(outputs: int):
    Case((17, 15), (16, 24)).check(Forced(outputs), bits=10 if outputs == 8 else 14)


@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize(("tiles", "passes"), [(3, None), (3, 1), (3, 2), (16, 1), (40, None)])
def test_blocks_of_tiles_and_columns_in_any_ranges_of_workgroups(tiles: int, passes: int | None, parts: int):
    """Workgroups that share a block transform it once per range."""
    columns = 22 * machine().lanes("f32") + 6
    run = Case((14, 15), (16, columns)).check(Forced(4, tiles, 32, passes), parts=parts)
    assert isinstance(run.plan, WinogradPlan) and run.plan.pass_count > 3
    assert d.evaluate(run.plan.workgroups, {}) == -(-16 // tiles) * -(-run.plan.pass_count // run.plan.blocking.passes)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(2, 19), st.integers(2, 19), st.integers(2, 20), st.integers(1, 40), st.integers(0, 2),
    st.integers(0, 3), st.sampled_from([2, 3, 4]),
    st.integers(1, 9),
)  # fmt: skip
def test_any_shape(h: int, w: int, ic: int, oc: int, low: int, high: int, outputs: int, tiles: int):
    if min(h, w) + low + high < 4:
        return
    Case((h, w), (ic, oc), pad=(low, high)).check(Forced(outputs, tiles, 16), parts=2)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_batch_known_at_run_time(batch: int):
    p = Program(("n", 9, 10, 16), (3, 3, 16, 24), constants=[1])
    x = p.pad(p.x[0], [0, 1, 1, 0], [0, 1, 1, 0])
    y = p.multiply_add(x, p.x[1], p.zeros("n", 9, 10, 24), maps_of(2, (1, 1), (1, 1)), "pppprrr")
    run = Runner(Forced(), p.dispatch(p.relu(y)))
    a, f = random((batch, 9, 10, 16), 1), random((3, 3, 16, 24), 2)
    assert_close(run(a, f, sizes={"n": batch})[0], np.maximum(convolve(padded(a, 1, 1), f, (1, 1), (1, 1)), 0), bits=16)


@pytest.mark.parametrize(("h", "w"), [(5, 9), (12, 7), (1, 2), (16, 16)])
def test_an_image_whose_size_is_known_at_run_time(h: int, w: int):
    p = Program((1, "h", "w", 8), (3, 3, 8, 8), (1, "h", "w", 8), constants=[1])
    x = p.pad(p.x[0], [0, 1, 1, 0], [0, 1, 1, 0])
    y = p.multiply_add(x, p.x[1], p.zeros(1, "h", "w", 8), maps_of(2, (1, 1), (1, 1)), "pppprrr")
    run = Runner(Forced(), p.dispatch(p.add(y, p.x[2])))
    a, f, residual = random((1, h, w, 8), 1), random((3, 3, 8, 8), 2), random((1, h, w, 8), 3)
    assert_close(
        run(a, f, residual, sizes={"h": h, "w": w})[0], convolve(padded(a, 1, 1), f, (1, 1), (1, 1)) + residual, bits=16
    )


def test_two_results_in_two_orders():
    """The sum and its relu, the latter with channels first."""
    shape = (1, 10, 9, 16)
    p = Program((1, 10, 9, 8), (3, 3, 8, 16), (16,), constants=[1, 2])
    x = p.pad(p.x[0], [0, 1, 1, 0], [0, 1, 1, 0])
    y = p.bias(p.multiply_add(x, p.x[1], p.zeros(*shape), maps_of(2, (1, 1), (1, 1)), "pppprrr"), p.x[2], 3)
    turned = p.moved(p.relu(y), [0, 2, 3, 1], 1, 16, 10, 9)
    a, f, bias = random((1, 10, 9, 8), 1), random((3, 3, 8, 16), 2), random((16,), 3)
    expected = convolve(padded(a, 1, 1), f, (1, 1), (1, 1)) + bias
    found = Runner(Forced(), p.dispatch(y, turned))(a, f, bias)
    assert_close(found[0], expected, bits=16)
    assert_close(found[1], np.maximum(expected, 0).transpose(0, 3, 1, 2), bits=16)


@pytest.mark.parametrize("outputs", [2, 4, 6])
@pytest.mark.parametrize(("h", "w", "channels"), [(10, 9, 16), (5, 13, 21), (8, 12, 64), (7, 2, 40)])
@pytest.mark.parametrize("known", [True, False])
def test_channels_first(outputs: int, h: int, w: int, channels: int, known: bool):
    """Rows of pixels are turned on their way out, those of tiles that the image ends in as well; sums that start from a
    tensor, a bias and a residual with channels last or first."""
    sizes = (h, w) if known else ("h", "w")
    shape = (2, *sizes, channels)
    p = Program((2, *sizes, 8), (3, 3, 8, channels), shape, (channels,), (2, channels, *sizes), constants=[1, 3])
    x = p.pad(p.x[0], [0, 1, 1, 0], [0, 1, 1, 0])
    y = p.bias(p.multiply_add(x, p.x[1], p.x[2], maps_of(2, (1, 1), (1, 1)), "pppprrr"), p.x[3], 3)
    turned = p.relu(p.add(p.moved(y, [0, 2, 3, 1], 2, channels, *sizes), p.x[4]))
    shapes = [(2, h, w, 8), (3, 3, 8, channels), (2, h, w, channels), (channels,), (2, channels, h, w)]
    a, f, start, bias, residual = (random(one, number) for number, one in enumerate(shapes))
    run = Runner(Forced(outputs), p.dispatch(turned))
    expected = convolve(padded(a, 1, 1), f, (1, 1), (1, 1)) + start + bias
    expected = np.maximum(expected.transpose(0, 3, 1, 2) + residual, 0)
    for at_end in (True, False):
        given = {} if known else {"sizes": {"h": h, "w": w}}
        found = run(a, f, start, bias, residual, parts=3, at_end=at_end, **given)
        assert_close(found[0], expected, bits=16, least=1.0)


def test_sums_that_start_from_a_tensor():
    shape = (1, 8, 7, 16)
    p = Program((1, 10, 9, 8), (3, 3, 8, 16), shape, constants=[1])
    y = p.multiply_add(p.x[0], p.x[1], p.x[2], maps_of(2, (1, 1), (1, 1)), "pppprrr")
    a, f, start = random((1, 10, 9, 8), 1), random((3, 3, 8, 16), 2), random(shape, 3)
    assert_close(Runner(Forced(), p.dispatch(y))(a, f, start)[0], convolve(a, f, (1, 1), (1, 1)) + start, bits=16)


def test_a_window_along_one_of_two_axes():
    """A 1 x 3 window: rows of the image only repeat."""
    from xdsl.ir.affine import AffineExpr, AffineMap

    dim = AffineExpr.dimension
    p = Program((6, 20, 8), (3, 8, 16), constants=[1])
    x = p.pad(p.x[0], [0, 1, 0], [0, 1, 0])
    maps = [
        AffineMap(5, 0, (dim(0), dim(1) + dim(3), dim(4))),
        AffineMap(5, 0, (dim(3), dim(4), dim(2))),
        AffineMap(5, 0, (dim(0), dim(1), dim(2))),
    ]
    y = p.multiply_add(x, p.x[1], p.zeros(6, 20, 16), maps, "ppprr")
    a, f = random((6, 20, 8), 1), random((3, 8, 16), 2)
    assert_close(
        Runner(Forced(), p.dispatch(y))(a, f)[0], convolve(np.pad(a, [(0, 0), (1, 1), (0, 0)]), f, (1,), (1,)), bits=16
    )
