"""The parts that schedules of loop nests are made of, one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.dispatch.loops_attribute import to_attribute
from fuseline.dispatch.view import DispatchView
from fuseline.evaluation import evaluate_function
from fuseline.ir.build import dims_map
from fuseline.ir.dim import evaluate as evaluate_size
from fuseline.targets.cpu.combinators.lanes import LaneLoop
from fuseline.targets.cpu.emit.coordinates import Index
from fuseline.targets.cpu.families.nests.collapsed_loops import collapse_loops
from fuseline.targets.cpu.families.nests.gathers import Gather, gathers
from fuseline.targets.cpu.families.nests.grid import given_grid, out_of_grid, scratch_elements, unaffordable
from fuseline.targets.cpu.families.nests.group_emitter import GroupEmitter
from fuseline.targets.cpu.families.nests.groups import Group, choose_lanes, groups_of
from fuseline.targets.cpu.families.nests.interleaved_stores import interleave
from fuseline.targets.cpu.families.nests.kernel import emit_nests
from fuseline.targets.cpu.families.nests.schedule import build_schedule
from fuseline.targets.cpu.families.nests.stages import Staging
from fuseline.targets.cpu.families.nests.tiling import (
    TileRow,
    coefficient,
    interleaved_channels,
    tiled_loops,
    transposed,
    transposed_tile_loops,
)
from fuseline.targets.cpu.families.nests.traffic import contiguous_traffic
from fuseline.targets.cpu.families.nests.workgroup import Workgroup
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from tests.graphs.borders import bordered
from tests.graphs.program import Program
from tests.kernel_ir.evaluate import evaluate
from tests.kernels import arrays_for
from tests.unit.targets.cpu.combinators.visits import Visits
from tests.unit.targets.cpu.kernel_ir.vectors import on_lanes

AVX2 = machine("avx2")
Make = Callable[[Program], SSAValue]


def _staged(p: Program, *results: SSAValue) -> Staging:
    return Staging(p.dispatch(*results))


def _axes(staging: Staging, value: SSAValue) -> list[LoopRef]:
    found = [axis for axis in staging.axes.of_value(value) if axis is not None]
    assert len(found) == len(staging.axes.of_value(value))
    return found


# registers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_a_square_is_transposed(lanes: int) -> None:
    rows = np.random.default_rng().standard_normal((lanes, lanes)).astype(np.float32)
    for number in range(lanes):
        found = on_lanes(lambda k, *vectors: transposed(k, vectors)[number], *rows)  # noqa: B023
        np.testing.assert_array_equal(found, rows[:, number])


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("lanes", [4, 8])
def test_rows_are_interleaved(count: int, lanes: int) -> None:
    rows = np.random.default_rng().standard_normal((count, lanes)).astype(np.float32)
    expected = rows.T.reshape(count, lanes)
    for number in range(count):
        found = on_lanes(lambda k, *vectors: interleave(k, vectors)[number], *rows)  # noqa: B023
        np.testing.assert_array_equal(found, expected[number])


def test_single_elements_stay_as_they_are() -> None:
    k = KernelBuilder("k", AVX2)
    rows = [k.load(k.binding(i, "f32", 1), 0) for i in range(3)]
    assert interleave(k, rows) == rows


def test_the_factor_of_a_variable() -> None:
    k, seen = KernelBuilder("k", AVX2), list[Any]()
    n = k.size(0)

    def body(i: Any) -> tuple[()]:
        seen.extend(
            [
                (i, 1),
                (k.add(k.mul(i, 3), 5), 3),
                (k.sub(n, i), -1),
                (k.mul(k.add(i, n), 4), 4),
                (k.mul(n, 8), 0),
                (7, 0),
                (k.mul(i, n), None),
                (k.div(i, 2), None),
                (k.add(k.mul(i, 2), k.mul(i, 3)), 5),
                (n, 0),
            ]
        )
        assert [coefficient(operand, i) for operand, _ in seen] == [factor for _, factor in seen]
        return ()

    k.loop(0, n, 1, body)
    assert len(seen) == 10


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_a_row_of_a_tile_is_loaded_along_the_tile(rows: int) -> None:
    """Lanes lie 10 elements apart; rows side by side, as many as there are lanes or fewer."""
    k = KernelBuilder("k", AVX2)
    x, y = k.binding(0, "f32", 200), k.binding(1, "f32", 64, writable=True)

    def tile(start: Any) -> tuple[()]:
        for row in range(rows):
            found = TileRow(k, start, row, 4, rows).load(x, Index(k.add(start, row), 10), 4)
            assert found is not None
            k.store(y, 4 * row, found)
        assert TileRow(k, start, 0, 4, rows).load(x, Index(k.mul(start, 2), 10), 4) is None
        assert TileRow(k, start, 0, 4, rows).load(x, Index(start, 10), 8) is None
        return ()

    k.loop(0, k.size(0), 4, tile)
    source, out = np.arange(200, dtype=np.float32), np.zeros(64, np.float32)
    evaluate(k.finish(), [source, out], [4])
    wanted = [[row + 10 * lane for lane in range(4)] for row in range(rows)]
    np.testing.assert_array_equal(out[: 4 * rows].reshape(rows, 4), wanted)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize(("lanes", "unroll"), [(1, 1), (4, 1), (4, 3), (8, 2)])
@pytest.mark.parametrize(("lo", "hi"), [(0, 0), (0, 3), (5, 29), (2, 26), (0, 24)])
def test_a_lane_loop_meets_every_element_once(
    lo: int, hi: int, lanes: int, unroll: int, compact: bool, masked: bool
) -> None:
    for known in (True, False):
        visits = Visits(compact=compact)
        k = visits.kernel

        def body(starts: Sequence[Any], width: int, active: Any, carried: Any) -> Any:
            for start in starts:
                visits.note(start, width if active is None else k.min(active, width))  # noqa: B023
            return (k.add(carried[0], len(starts)),)  # noqa: B023

        loop = LaneLoop(k, lanes, unroll=unroll, masked=masked)
        (count,) = loop.run(lo, hi if known else k.size(0), body, (k.as_value(0),))
        visits.note(count)
        *seen, total = visits.run([hi])
        runs = list(zip(seen[::2], seen[1::2], strict=True))
        assert [place for start, width in runs for place in range(start, start + width)] == list(range(lo, hi))
        assert total == len(runs) and all(width in (1, lanes) or start + width == hi for start, width in runs)


# stages ---------------------------------------------------------------------------------------------------------------


def _softmax(p: Program) -> SSAValue:
    return p.softmax(p.x[0])


def test_the_grid_is_what_all_stages_have() -> None:
    p = Program((6, 40))
    value = _softmax(p)
    staging = _staged(p, value)
    rows, columns = _axes(staging, value)
    assert given_grid(staging) == [rows] and columns not in given_grid(staging)
    q = Program((6, 40))
    plain = q.unary(q.x[0])
    alone = _staged(q, plain)
    assert given_grid(alone) == _axes(alone, plain)


def test_what_a_workgroup_holds() -> None:
    p = Program((6, 40), ("n", 3))
    value = _softmax(p)
    staging = _staged(p, value, p.unary(p.x[1]))
    rows, columns = _axes(staging, value)
    assert [scratch_elements(staging, value, grid) for grid in ([], [rows], [columns], [rows, columns])] == [
        240,
        40,
        6,
        1,
    ]
    assert scratch_elements(staging, staging.view.results[1], []) >= 3 << 40


def test_what_fits_stays_in_scratch() -> None:
    p = Program((6, 100))
    staging = _staged(p, p.softmax(p.unary(p.x[0])))
    (rows,) = given_grid(staging)
    assert out_of_grid(staging, [rows]) is None and unaffordable(staging, [rows]) is None


def _by_first_loop(p: Program, result: SSAValue) -> DispatchView:
    """The dispatch of `result` with its first loop as the grid: another member, that is gone, had no others."""
    view = p.dispatch(result)
    members = tuple(
        replace(one, grid_loops=tuple(loop if loop == 0 else None for loop in one.grid_loops))
        for one in view.loops.members
    )
    loops = replace(view.loops, grids=((view.loops.grids[0][0],),), members=members)
    view.entry.attributes[LOOPS_ATTRIBUTE] = to_attribute(loops)
    return DispatchView(view.entry)


@pytest.mark.parametrize(
    ("rows", "inside"), [(("n",), True), (("n", 3), True), ((5, "n"), True), ((40,), False), ((2, 9), False)]
)
def test_rows_without_a_bound_are_not_made_again_at_every_read(rows: tuple[int | str, ...], inside: bool) -> None:
    p = Program(("b", *rows, 24))
    scaled = p.softmax(p.x[0])
    staging = Staging(_by_first_loop(p, p.softmax(scaled)))
    reduced = [value for stage in staging.stages if stage.op is not None for value in stage.values]
    assert (len(given_grid(staging)) > 1) == inside
    build_schedule(staging, AVX2)
    assert len(reduced) == 4 and staging.stored.issuperset(reduced)


def test_rows_that_are_read_across_stay_out_of_the_grid() -> None:
    p = Program(("b", "n", 24))
    sums = p.reduce(p.x[0])
    staging = Staging(_by_first_loop(p, p.by_row(sums, p.reduce(sums), lambda b: b.op(arith.MulfOp, *b.args[:2]))))
    assert unaffordable(staging, given_grid(staging)) is not None
    assert len(given_grid(staging)) == 1


def test_stages_that_share_loops_are_one_group() -> None:
    p = Program((6, 40))
    value = _softmax(p)
    staging = _staged(p, value)
    rows, columns = _axes(staging, value)
    groups = groups_of(staging, {rows})
    assert [stage for group in groups for stage in group.stages] != [] and sum(len(g.stages) for g in groups) == len(
        staging.stages
    )
    assert all(group.inner in ([], [columns]) for group in groups)
    whole = groups_of(staging, set())
    assert all(rows in group.inner for group in whole)


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_lanes_fill_a_register(isa: str) -> None:
    p = Program((6, 40))
    value = p.unary(p.x[0])
    staging = _staged(p, value)
    (group,) = groups_of(staging, set())
    rows, columns = _axes(staging, value)
    for weights, lane, expected in (
        ({rows: 1.0, columns: 9.0}, None, columns),
        ({rows: 9.0, columns: 1.0}, None, rows),
        ({rows: 9.0}, columns, columns),
    ):
        choose_lanes(staging, group, weights, lane, machine(isa))
        assert group.lane_axis == expected and group.lanes == machine(isa).f32_lanes and group.lane_reduction is None


def test_a_reduction_along_memory_runs_across_the_lanes() -> None:
    p = Program((6, 40))
    value = p.reduce(p.x[0])
    staging = _staged(p, value)
    (rows,) = _axes(staging, value)
    (group,) = groups_of(staging, {rows})
    choose_lanes(staging, group, contiguous_traffic(staging), None, AVX2)
    assert group.lane_axis is None and group.lane_reduction == group.stages[0].reduction[0]
    assert isinstance(group, Group)


@pytest.mark.parametrize(
    ("make", "shape", "last"),
    [(lambda p: p.unary(p.x[0]), (6, 40), 1), (lambda p: p.unary(p.x[0], permutation=(1, 0)), (6, 40), 0)],
)
def test_traffic_is_counted_along_memory(make: Make, shape: tuple[int, ...], last: int) -> None:
    p = Program(shape)
    value = make(p)
    staging = _staged(p, value)
    weights, axes = contiguous_traffic(staging), _axes(staging, value)
    read, written = axes[last], axes[-1]
    assert weights[written] >= 240 and sum(weights.values()) == pytest.approx(240 * 2.1)
    assert (len(weights) == 1) == (read == written)


def test_axes_that_lie_side_by_side_are_one_loop() -> None:
    p = Program((4, 6, 8), (8,))
    plain = p.unary(p.x[0])
    staging = _staged(p, plain)
    axes = _axes(staging, plain)
    assert collapse_loops(staging, axes[:2], axes[2], 8) == ([], axes)
    assert collapse_loops(staging, axes, None, 8) == ([axes], [])
    q = Program((4, 6, 8), (8,))
    biased = q.bias(q.x[0], q.x[1], 2)
    other = _staged(q, biased)
    axes = _axes(other, biased)
    assert collapse_loops(other, axes[:2], axes[2], 8) == ([axes[:2]], axes[2:])


@pytest.mark.parametrize(
    "make",
    [
        lambda p: p.pad(p.x[0], [0, 1, 1], [0, 1, 1]),
        lambda p: p.slice(p.x[0], [0, 1, 2], [4, 20, 20]),
        lambda p: bordered(p, p.x[0], [0, 1, 1], [0, 1, 1], "reflect"),
    ],
)
def test_axes_of_places_that_are_computed_are_loops_of_their_own(make: Make) -> None:
    """Vectors across both would compute the place of each lane, and gather."""
    p = Program((4, 24, 24))
    value = p.unary(make(p))
    staging = _staged(p, value)
    axes = _axes(staging, value)
    assert collapse_loops(staging, axes[:2], axes[2], 8) == ([[axes[0]], [axes[1]]], [axes[2]])


def test_a_transposition_keeps_its_axes_apart() -> None:
    p = Program((40, 60))
    value = p.unary(p.x[0], permutation=(1, 0))
    staging = _staged(p, value)
    rows, columns = _axes(staging, value)
    assert collapse_loops(staging, [rows], columns, 8) == ([[rows]], [columns])
    # the operand lies along the rows of the result, across the lanes
    assert tiled_loops(staging, [[rows]], [columns], 8) == [rows]
    assert tiled_loops(staging, [[rows]], [columns], 3) == []
    assert tiled_loops(staging, [[columns]], [rows], 8) == []


@pytest.mark.parametrize(("shape", "worth"), [((40, 4), True), ((4, 40), False), ((8, 8), True)])
def test_what_is_tiled(shape: tuple[int, int], worth: bool) -> None:
    p = Program(shape)
    value = p.unary(p.x[0], permutation=(1, 0))
    staging = _staged(p, value)
    rows, columns = _axes(staging, value)
    assert bool(tiled_loops(staging, [[rows]], [columns], 8)) == worth
    assert bool(tiled_loops(staging, [[rows]], [columns], 8, least=5)) == (worth and shape[1] >= 5)


@pytest.mark.parametrize(("channels", "found"), [(3, 3), (4, 4), (5, 5), (15, 15), (16, 0), (1, 0)])
@pytest.mark.parametrize(
    ("pixels", "lanes", "made"),
    [(64, 8, 8), (8, 8, 8), (5, 8, 4), (24, 32, 8), (31, 16, 16), (30, 32, 8), (20, 16, 16)],
)
def test_few_channels_are_interleaved(channels: int, found: int, pixels: int, lanes: int, made: int) -> None:
    """By vectors that are as few as may be, with what is left over, where pixels are less than one."""
    p = Program((channels, pixels))
    value = p.unary(p.x[0], permutation=(1, 0))
    staging = _staged(p, value)
    axes = [axis for axis in staging.axes.of_value(value) if axis is not None]
    assert interleaved_channels(staging, axes, lanes) == ((found, made) if found else (0, lanes))
    q = Program((pixels, channels))
    plain = q.unary(q.x[0])
    straight = _staged(q, plain)
    assert interleaved_channels(straight, [a for a in straight.axes.of_value(plain) if a is not None], 8) == (0, 8)


def test_less_pixels_are_gathered() -> None:
    p = Program((3, 3))
    staging = _staged(p, value := p.unary(p.x[0], permutation=(1, 0)))
    axes = [axis for axis in staging.axes.of_value(value) if axis is not None]
    assert interleaved_channels(staging, axes, 8) == (0, 8)


def test_what_a_body_picks() -> None:
    p = Program((9, 16), (5, 3))
    value = p.gathered(p.x[0], p.x[1], 5, 16)
    staging = _staged(p, value)
    (op,) = [op for op in staging.live if op.results[0] is value]
    assert gathers(op) == [Gather(p.x[0], (None, 1), (frozenset({0}),))]  # pyright: ignore[reportArgumentType]
    rows, columns = _axes(staging, value)
    assert transposed_tile_loops(staging, [[columns]], [rows], 8) == [columns]
    assert transposed_tile_loops(staging, [[columns]], [rows], 5) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda p: p.unary(p.x[0]),
        lambda p: p.unary(p.x[0], permutation=(1, 0)),
        lambda p: p.reduce(p.x[0]),
        lambda p: p.reduce(p.x[0], axis=0, combine=arith.MaximumfOp),
        _softmax,
        lambda p: p.binary(p.x[0], p.x[0], dims_map(2, [0, None])),
    ],
)
def test_a_schedule_is_emitted_whole(make: Make) -> None:
    """All workgroups of a schedule, one kernel: what the dispatch means; and group by group the same."""
    p = Program((11, 19))
    view: DispatchView = p.dispatch(make(p))
    schedule = build_schedule(Staging(view), AVX2)
    arrays = arrays_for(view)
    (expected,) = evaluate_function(view.entry, arrays)

    def by_group(k: KernelBuilder) -> None:
        workgroup = Workgroup(schedule, k)

        def one(number: Any) -> None:
            workgroup.enter(number)
            for group in schedule.groups:
                GroupEmitter(workgroup, group).emit()

        k.loop(k.begin, k.end, 1, one)

    for emit in (lambda k: emit_nests(schedule, k), by_group):
        k = KernelBuilder("k", AVX2)
        emit(k)
        out = np.full(expected.shape, np.nan, np.float32)
        evaluate(k.finish(), [*arrays, out], [], 0, evaluate_size(schedule.workgroups, {}))
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
