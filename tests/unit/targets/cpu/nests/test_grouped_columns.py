"""Norms over groups of channels that come last: lanes along whole rows, the channels of each group put together
after."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.evaluation.program import evaluate_function
from fuseline.targets.cpu.families.family import Policy
from fuseline.targets.cpu.families.nests.grouped_columns import grouped_columns
from fuseline.targets.cpu.families.nests.loop_nest import LoopNest, nest_plan
from fuseline.targets.cpu.families.nests.schedule import MOST_COLUMNS, WORKGROUP_WORK
from fuseline.targets.cpu.families.nests.side_by_side import traversals
from fuseline.targets.cpu.isa import machine
from tests.draws import RNG
from tests.kernels import Runner

from .generics import empty, fill, function, generic, tensor
from .texts import check, compare, inputs, parse

Shape = tuple[int | str, int | str, int | str, int]

ALL, GROUPS, COLUMNS = "d0, d1, d2, d3", "d0, d2", "d2, d3"
ADD = ("%t = arith.addf %o0, %i0 : f32", [("%t", "f32")])
SQUARES = ("%u = arith.mulf %i0, %i0 : f32\n%t = arith.addf %o0, %u : f32", [("%t", "f32")])
DEVIATIONS = (
    "%d = arith.subf %i0, %i1 : f32\n%u = arith.mulf %d, %d : f32\n%t = arith.addf %o0, %u : f32",
    [("%t", "f32")],
)
NORMALISED = (
    """%d = arith.subf %i0, %i1 : f32
    %r = math.rsqrt %i2 : f32
    %p = arith.mulf %d, %r : f32
    %q = arith.mulf %p, %i3 : f32""",
    [("%q", "f32")],
)


def group_norm(shape: Shape, *, passes: int = 2, moments: bool = False) -> str:
    """`(x - m) / sqrt(v) * scale` of x(n, s, g, k): m the sums over (s, k), v the sums of squares (one pass over x) or
    of squared deviations (two passes). `moments`: these are results, too."""
    n, _, g, k = shape
    x, few, row = tensor(shape), tensor((n, g)), tensor((g, k))
    inputs = [("%x", x)] if passes == 1 else [("%x", x), ("%m", few)]
    lines = [
        fill("z", "0.25", (n, g)),
        empty("e", shape),
        generic("%m", [("%x", x)], [("%z", few)], [ALL, GROUPS], "prpr", *ADD),
        generic("%v", inputs, [("%z", few)], [ALL, *[GROUPS] * len(inputs)], "prpr",
                *(SQUARES if passes == 1 else DEVIATIONS)),
        generic("%y", [("%x", x), ("%m", few), ("%v", few), ("%w", row)], [("%e", x)],
                [ALL, GROUPS, GROUPS, COLUMNS, ALL], "pppp", *NORMALISED),
    ]  # fmt: skip
    names = sorted({size for size in shape if isinstance(size, str)})
    results = [("%y", x), *([("%m", few), ("%v", few)] if moments else [])]
    return function([("x", shape, "f32"), ("w", (g, k), "f32")], names, "\n".join(lines), results)


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize(
    "shape", [(2, 5, 4, 6), (1, 7, 3, 5), (3, 4, 2, 2), (1, 9, 40, 10), (2, 3, 7, 17), (1, 2, 5, 36)]
)
def test_norms_of_groups(shape: tuple[int, int, int, int], passes: int):
    text = group_norm(shape, passes=passes)
    assert nest_plan(parse(text), machine("avx512")).schedule.grouped
    check(text, compiled=True, bits=15)


@pytest.mark.parametrize("shape", [("n", 5, 4, 6), (2, "s", 3, 5), ("n", "s", 20, 4), (1, 4, "g", 3)])
def test_sizes_that_the_run_tells(shape: Shape):
    names = {size: int(RNG.integers(1, 7)) for size in shape if isinstance(size, str)}
    check(group_norm(shape), sizes=names, bits=15)


def test_random_groups():
    for _ in range(6):
        n, s, g, k = (int(RNG.integers(*limits)) for limits in ((1, 4), (2, 12), (2, 40), (2, 40)))
        check(group_norm((n, s, g, k), passes=int(RNG.integers(1, 3)), moments=bool(RNG.integers(2))), bits=14)


def test_moments_are_results_too():
    check(group_norm((2, 6, 5, 6), moments=True), bits=15)


def test_moments_alone():
    shape, few = (2, 6, 5, 6), tensor((2, 5))
    lines = [
        fill("z", "1.0", (2, 5)),
        generic("%m", [("%x", tensor(shape))], [("%z", few)], [ALL, GROUPS], "prpr", *ADD),
    ]
    text = function([("x", shape, "f32")], [], "\n".join(lines), [("%m", few)])
    assert grouped_columns(parse(text), machine()) is not None
    check(text)


def test_a_workgroup_takes_whole_groups():
    schedule = nest_plan(parse(group_norm((2, 40, 1000, 10))), machine()).schedule
    assert schedule.grouped and schedule.chunk % 10 == 0 and MOST_COLUMNS <= schedule.chunk < MOST_COLUMNS + 80
    assert schedule.workgroups == 2 * -(-10000 // schedule.chunk)


def test_groups_are_shared_out_among_threads():
    isa = machine()
    width = isa.f32_lanes // 2
    view = parse(group_norm((1, WORKGROUP_WORK // (8 * width), 16, width)))
    first, second, third = (nest_plan(view, isa, threads).schedule.workgroups for threads in (1, 2, 3))
    assert (first, second) == (1, 2) and third in (2, 3, 4)
    assert nest_plan(parse(group_norm((1, 2, 16, width))), isa, 2).workgroups == 1  # too little for two


def test_shared_out_groups_are_the_same_norm():
    view = parse(group_norm((1, WORKGROUP_WORK // 128, 24, 4)))
    run = Runner(LoopNest(Policy(threads=3)), view)
    arrays = inputs(view, {}, 3)
    assert run.plan.workgroups == 3 and run.unproved() == []
    for found, want in zip(run(*arrays), evaluate_function(view.entry, arrays), strict=True):
        compare(found, want, 12)


def in_two_steps(shape: tuple[int, int, int], *, out: str = "d0, d1, d2", down: bool = True) -> str:
    """`(x - m) * v * scale` of x(s, g, k): the sums over s, then of those m over k, v of their
    squares around m. `out`: the order of the result; without `down` the first are an argument."""
    sizes = dict(zip(["d0", "d1", "d2"], shape, strict=True))
    there = tuple(sizes[name] for name in out.split(", "))
    x, row, few = tensor(shape), tensor(shape[1:]), tensor(shape[1:2])
    rows = generic("%sums", [("%x", x)], [("%zr", row)], ["d0, d1, d2", "d1, d2"], "rpp", *ADD)
    lines = [
        fill("zr", "0.25", shape[1:]),
        fill("z", "0.5", shape[1:2]),
        empty("e", there),
        *([rows] if down else []),
        generic("%m", [("%sums", row)], [("%z", few)], ["d0, d1", "d0"], "pr", *ADD),
        generic("%v", [("%sums", row), ("%m", few)], [("%z", few)], ["d0, d1", "d0", "d0"], "pr", *DEVIATIONS),
        generic("%y", [("%x", x), ("%m", few), ("%v", few), ("%w", row)], [("%e", tensor(there))],
                ["d0, d1, d2", "d1", "d1", "d1, d2", out], "ppp", *NORMALISED),
    ]  # fmt: skip
    arguments = [("x", shape, "f32"), ("w", shape[1:], "f32"), *([] if down else [("sums", shape[1:], "f32")])]
    return function(arguments, [], "\n".join(lines), [("%y", tensor(there))])


@pytest.mark.parametrize("shape", [(5, 4, 6), (7, 3, 5), (9, 40, 10), (3, 7, 17), (33, 16, 4)])
@pytest.mark.parametrize("out", ["d0, d1, d2", "d1, d2, d0"])
def test_sums_in_two_steps_already(shape: tuple[int, int, int], out: str):
    text = in_two_steps(shape, out=out)
    assert nest_plan(parse(text), machine("avx512")).schedule.grouped
    check(text, compiled=True, bits=14)


def test_channels_first_are_squares_turned_in_registers():
    for shape, turned in (((33, 16, 4), True), ((9, 16, 4), False), ((33, 3, 4), False)):  # rows, columns of a vector
        schedule = nest_plan(parse(in_two_steps(shape, out="d1, d2, d0")), machine("avx512")).schedule
        assert schedule.grouped and (schedule.groups[-1].turned is not None) == turned


@pytest.mark.parametrize(
    "text",
    [
        in_two_steps((5, 4, 6), down=False),  # no row is reduced
        in_two_steps((5, 4, 6), out="d1, d0, d2"),  # rows between the groups and their columns
        in_two_steps((5, 4, 16)),  # whole vectors of one group
    ],
)
def test_what_stays_in_groups(text: str):
    assert grouped_columns(parse(text), machine("avx512")) is None
    check(text, bits=14)


@pytest.mark.parametrize(
    ("maps", "shape"),
    [
        (["d0, d2, d1, d3", GROUPS], (2, 4, 5, 6)),  # rows between the groups and their columns
        (["d0, d1, d3, d2", GROUPS], (2, 5, 6, 4)),  # columns before groups
        ([ALL, "d0, d2"], (2, 5, 4, 64)),  # whole vectors of one group
        ([ALL, "d0, d2"], (2, 1, 4, 6)),  # one row
    ],
)
def test_what_is_not_in_groups_of_few_columns(maps: list[str], shape: tuple[int, ...]):
    by_loop = dict(zip(maps[0].split(", "), shape, strict=True))
    few = tensor((2, by_loop["d2"]))
    lines = [
        fill("z", "0.0", (2, by_loop["d2"])),
        generic("%m", [("%x", tensor(shape))], [("%z", few)], maps, "prpr", *ADD),
    ]
    text = function([("x", shape, "f32")], [], "\n".join(lines), [("%m", few)])
    assert grouped_columns(parse(text), machine("avx512")) is None
    check(text)


@pytest.mark.parametrize(("passes", "together"), [(1, [2]), (2, [1])])
def test_sums_that_need_nothing_of_each_other_share_a_traversal(passes: int, together: list[int]):
    schedule = nest_plan(parse(group_norm((2, 5, 4, 6), passes=passes)), machine()).schedule
    first = schedule.groups[0].stages
    assert [len(one) for one in traversals(first, (), schedule.staging.view.shapes)] == together
    assert traversals(first, first, schedule.staging.view.shapes) == [[stage] for stage in first]


def test_the_dispatch_stays_as_it_is():
    view = parse(group_norm((2, 5, 4, 6)))
    before = str(view.entry)
    found = grouped_columns(view, machine())
    assert found is not None and str(view.entry) == before
    arrays = [np.asarray(array) for array in inputs(view, {}, 1)]
    for one, other in zip(
        evaluate_function(found.view.entry, arrays), evaluate_function(view.entry, arrays), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
