"""Filters that only the run knows, in every order of their dimensions and computed, against NumPy."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.build import dims_map
from fuseline.targets.cpu.families.window.family import WindowFamily
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.target import Refusal
from tests.graphs.program import Program
from tests.kernels import Runner, assert_close, kernel_of, plan_of, random

from . import test_grouped, test_window

FAMILY = WindowFamily()
dim = AffineExpr.dimension
CASES = {name: case for name, case in test_window.CASES.items() if case.image[-1] > 1}


def staged(run: Runner) -> Runner:
    assert run.plan.notes["filter"] == "staged"
    return run


def depthwise(case: test_window.Case, order: tuple[int, ...], *, relu: bool = False) -> DispatchView:
    """Loops `(n, *space, c, *window)`; dimension `i` of the filter is number `order[i]` of `(*window, c)`."""
    n = case.rank
    loops = [*range(n + 2, 2 * n + 2), n + 1]
    sizes = (*case.window, case.image[-1])
    p = Program(case.image, tuple(sizes[i] for i in order))
    filter_ = p.relu(p.x[1]) if relu else p.x[1]
    maps = [
        test_window.image_map(n, case.stride, case.dilation),
        dims_map(2 * n + 2, [loops[i] for i in order]),
        case.out_map,
    ]
    return p.dispatch(p.multiply_add(case.padded(p, p.x[0], 0.0), filter_, p.zeros(*case.out), maps, case.kinds))


def check(case: test_window.Case, order: tuple[int, ...], *, relu: bool = False) -> None:
    x, w = random(case.image, 1), random((*case.window, case.image[-1]), 2)
    low, high = case.padding
    padded = np.pad(x, [(0, 0), *[(low, high)] * case.rank, (0, 0)])
    filters = (np.maximum(w, 0) if relu else w).reshape(-1, case.image[-1])
    seen = test_window.taps(padded, case.window, case.stride, case.dilation)
    expected = sum(t * f for t, f in zip(seen, filters, strict=True))
    run = Runner(FAMILY, depthwise(case, order, relu=relu))
    for at_end in (True, False):
        assert_close(run(x, np.ascontiguousarray(w.transpose(order)), at_end=at_end)[0], np.asarray(expected))
    assert run.plan.notes.get("filter") == ("staged" if relu or order[-1] != case.rank else None)


@pytest.mark.parametrize("name", CASES)
def test_channels_first(name: str):
    case = CASES[name]
    check(case, (case.rank, *range(case.rank)))


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_any_order(order: tuple[int, ...]):
    check(CASES["odd channels"], order)


@pytest.mark.parametrize("name", ["3x3 stride 2", "odd channels", "batch"])
def test_a_filter_that_is_computed(name: str):
    check(CASES[name], (2, 0, 1), relu=True)
    check(CASES[name], (0, 1, 2), relu=True)


@pytest.mark.parametrize("name", test_grouped.CASES)
def test_groups(name: str):
    case = test_grouped.CASES[name]
    run = staged(Runner(FAMILY, case.view(constant=False)))
    arrays = case.arrays()
    for at_end in (True, False):
        assert_close(run(*arrays, at_end=at_end)[0], case.expected(*arrays))


def test_many_channels_in_workgroups_of_few():
    """More panels than are staged together."""
    case = test_window.Case((4, 5), (7, 7), 700, pad=(3, 3))
    plan = plan_of(FAMILY, depthwise(case, (2, 0, 1)), machine("avx2"))
    assert d.evaluate(plan.workgroups, {}) > 1
    check(case, (2, 0, 1))


@pytest.mark.parametrize("batch", [1, 3])
def test_a_filter_for_each_image(batch: int):
    """Loops: image, line, pixel, channel | window."""
    p = Program((batch, 6, 7, 20), (batch, 20, 3, 3))
    image = AffineMap(6, 0, (dim(0), dim(1) + dim(4), dim(2) + dim(5), dim(3)))
    maps = [image, dims_map(6, [0, 3, 4, 5]), dims_map(6, [0, 1, 2, 3])]
    view = p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(batch, 4, 5, 20), maps, "pppprr"))
    x, w = random((batch, 6, 7, 20), 1), random((batch, 20, 3, 3), 2)
    seen = test_window.taps(x, (3, 3), 1, 1)
    filters = w.reshape(batch, 20, 9).astype(np.float64)
    expected = sum(t * filters[:, None, None, :, i] for i, t in enumerate(seen))
    assert_close(staged(Runner(FAMILY, view))(x, w)[0], np.asarray(expected))


def sized() -> DispatchView:
    """Channels and lines of sizes that only the run knows."""
    p = Program(("h", 9, "c"), ("c", 3, 3))
    image = AffineMap(5, 0, (dim(0) + dim(3), dim(1) + dim(4), dim(2)))
    maps = [image, dims_map(5, [2, 3, 4]), dims_map(5, [0, 1, 2])]
    return p.dispatch(p.multiply_add(p.pad(p.x[0], [1, 1, 0], [1, 1, 0]), p.x[1], p.zeros("h", 9, "c"), maps, "ppprr"))


@pytest.mark.parametrize(("h", "c"), [(1, 1), (5, 8), (6, 19), (7, 33)])
def test_channels_known_at_run_time(h: int, c: int):
    x, w = random((h, 9, c), 1), random((c, 3, 3), 2)
    seen = test_window.taps(np.pad(x, [(1, 1), (1, 1), (0, 0)])[None], (3, 3), 1, 1)
    expected = sum(t[0] * f for t, f in zip(seen, w.reshape(c, 9).T, strict=True))
    assert_close(staged(Runner(FAMILY, sized()))(x, w, sizes={"h": h, "c": c})[0], np.asarray(expected))


VIEWS = {
    "depthwise": depthwise(CASES["odd channels"], (2, 0, 1)),
    "computed": depthwise(CASES["3x3 stride 2"], (2, 0, 1), relu=True),
    "groups": test_grouped.CASES["four per group"].view(constant=False),
}


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("name", VIEWS)
def test_no_access_can_leave_its_buffer(name: str, isa: str):
    plan = plan_of(FAMILY, VIEWS[name], machine(isa))
    assert plan.notes["filter"] == "staged"
    assert check_bounds(kernel_of(FAMILY, plan, machine(isa)), [], d.evaluate(plan.workgroups, {})) == []


def refusal(view: DispatchView) -> str:
    found = FAMILY.accepts(view, machine("avx2"))
    assert isinstance(found, Refusal)
    return found.code


def test_a_filter_that_differs_between_lines_is_refused():
    p = Program((6, 6, 8), (5, 8, 2, 2))
    maps = [
        AffineMap(5, 0, (dim(0) + dim(3), dim(1) + dim(4), dim(2))),
        dims_map(5, [0, 2, 3, 4]),
        dims_map(5, [0, 1, 2]),
    ]
    assert refusal(p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(5, 5, 8), maps, "ppprr"))) == "filter-per-pixel"


def test_a_window_of_a_size_known_at_run_time_is_refused():
    p = Program((40, 6, 8), (8, "k", 2))
    maps = [AffineMap(5, 0, (dim(0) + dim(3), dim(1) + dim(4), dim(2))), dims_map(5, [2, 3, 4]), dims_map(5, [0, 1, 2])]
    assert refusal(p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(5, 5, 8), maps, "ppprr"))) == "filter-size"


def test_a_filter_too_large_for_scratch_is_refused():
    assert refusal(depthwise(test_window.Case((60, 60), (48, 48), 8), (2, 0, 1))) == "filter-size"
