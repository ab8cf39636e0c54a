"""Images of unknown sizes may have far fewer tiles than a block: no more are transformed and multiplied."""

from __future__ import annotations

from functools import cache

import pytest

from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from tests.graphs.program import Program
from tests.kernels import Array, Runner, assert_close, kernel_of, plan_of, random
from tests.unit.targets.cpu.contraction_families.test_convolution import convolve, maps_of

from .convolutions import Forced, padded

TILES = 37
CHANNELS, COLUMNS = 19, 21


def _view(rank: int) -> DispatchView:
    """A padded convolution over `rank` axes of unknown sizes."""
    sizes = ["y", "x"][-rank:]
    p = Program(("n", *sizes, CHANNELS), (*[3] * rank, CHANNELS, COLUMNS), constants=[1])
    image = p.pad(p.x[0], [0, *[1] * rank, 0], [0, *[1] * rank, 0])
    kinds = "p" * (rank + 2) + "r" * (rank + 1)
    out = p.zeros("n", *sizes, COLUMNS)
    return p.dispatch(p.relu(p.multiply_add(image, p.x[1], out, maps_of(rank, [1] * rank, [1] * rank), kinds)))


@cache
def _runner(rank: int, passes: int | None) -> Runner:
    return Runner(Forced(4, TILES, 32, passes), _view(rank))


def _arrays(rank: int, size: tuple[int, ...], batch: int) -> tuple[Array, Array]:
    return random((batch, *size, CHANNELS), sum(size)), random((*[3] * rank, CHANNELS, COLUMNS), 1)


@pytest.mark.parametrize("passes", [None, 1])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("size", [(1,), (4,), (5,), (33,), (150,), (1, 1), (3, 4), (6, 9), (17, 12), (31, 40)])
def test_any_number_of_tiles(size: tuple[int, ...], batch: int, passes: int | None):
    rank = len(size)
    run = _runner(rank, passes)
    assert isinstance(run.plan, WinogradPlan) and run.plan.has_few_tiles
    x, w = _arrays(rank, size, batch)
    expected = convolve(padded(x, 1, 1), w, (1,) * rank, (1,) * rank).clip(min=0)
    sizes = {"n": batch, **dict(zip(["y", "x"][-rank:], size, strict=True))}
    for at_end in (True, False):
        assert_close(run(x, w, sizes=sizes, parts=2, at_end=at_end)[0], expected, bits=15, least=1.0)


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("size", [1, 9, 150])
def test_no_access_can_leave_its_buffer(size: int, isa: str):
    family, target, view = Forced(4, TILES, 32), machine(isa), _view(1)
    plan = plan_of(family, view, target)
    sizes = {"n": 1, "x": size}
    values = [sizes[name] for name in view.size_names]
    assert check_bounds(kernel_of(family, plan, target), values, d.evaluate(plan.workgroups, sizes)) == []
