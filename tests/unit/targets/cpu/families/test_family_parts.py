"""What families are put together from: accesses, directions, combiners, results, walks, small maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import gcd
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import f16, f32, i1, i8, i16, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.analysis.source_paths import Border
from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import dims_map
from fuseline.ir.dim import Dim, add, evaluate, mul, symbol
from fuseline.targets.cpu.emit.coordinates import DelinearizedIndex
from fuseline.targets.cpu.families.blocked.buffers import Buffers
from fuseline.targets.cpu.families.blocked.tiles import Box, Tile
from fuseline.targets.cpu.families.combining import combiners
from fuseline.targets.cpu.families.contraction.access import (
    MOST_PIECES,
    access_segments,
    contiguous_reads,
    linear_access,
    loop_boundaries,
    plain_access,
)
from fuseline.targets.cpu.families.contraction.axes import Axis
from fuseline.targets.cpu.families.contraction.columns import column_strides, reduction_cuts
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops, contraction_loops
from fuseline.targets.cpu.families.contraction.pairs import reads_across_memory, reads_as_stored, takes_pairs
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan, plan_contraction
from fuseline.targets.cpu.families.contraction.results import Joined, result_paths
from fuseline.targets.cpu.families.directions import Direction, direction, in_steps
from fuseline.targets.cpu.families.sequential.lines import LinesPlan, line_loops
from fuseline.targets.cpu.families.window.columns import Across
from fuseline.targets.cpu.families.window.group_columns import GroupColumns
from fuseline.targets.cpu.families.window.loops import Groups
from fuseline.targets.cpu.families.winograd.maps import mapped
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.target import Refusal
from tests.graphs.program import Program
from tests.kernel_ir.evaluate import evaluate as run
from tests.unit.targets.cpu.kernel_ir.vectors import on_lanes

AVX2 = machine("avx2")


def _generic(value: SSAValue) -> linalg.ops.GenericOp:
    assert is_generic(value.owner)
    return value.owner


# combiners ------------------------------------------------------------------------------------------------------------

KINDS: dict[Any, tuple[Attribute, Any]] = {
    arith.AddfOp: (f32, np.add),
    arith.MulfOp: (f32, np.multiply),
    arith.MaximumfOp: (f32, np.maximum),
    arith.MinnumfOp: (f32, np.fmin),
    arith.AddiOp: (i32, np.add),
    arith.MaxSIOp: (i8, np.maximum),
    arith.MinSIOp: (i8, np.minimum),
    arith.MinUIOp: (i8, lambda a, b: np.minimum(a.view(np.uint8), b.view(np.uint8)).view(np.int8)),
    arith.AndIOp: (i32, np.bitwise_and),
    arith.XOrIOp: (i32, np.bitwise_xor),
    arith.OrIOp: (i1, np.logical_or),
    arith.MaxSIOp: (i8, np.maximum),
}


def _reduced(kind: Any, element: Attribute, *, swapped: bool = False) -> linalg.ops.GenericOp:
    p = Program((4, 8), element=element)
    order = (0, 1) if swapped else (1, 0)
    value = p.generic(
        [p.x[0]],
        [p.empty(4)],
        [dims_map(2, [0, 1]), dims_map(2, [0])],
        "pr",
        lambda b: [b.op(kind, *(b.args[i] for i in order))],
    )[0]
    return _generic(value)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_combiner_combines_and_has_a_neutral_element(kind: Any, swapped: bool):
    element, numpy = KINDS[kind]
    op = _reduced(kind, element, swapped=swapped)
    found = combiners(op)
    assert found is not None and found[0].element is op.body.block.args[0]
    dtypes: dict[Any, Any] = {f32: np.float32, i32: np.int32, i8: np.int8, i1: np.bool_}
    dtype = dtypes[element]
    a, b = (np.random.default_rng().integers(-99 if dtype != np.bool_ else 0, 99, 8).astype(dtype) for _ in range(2))
    np.testing.assert_array_equal(on_lanes(lambda k, x, y: found[0].combine(k, x, y), a, b), numpy(a, b))
    np.testing.assert_array_equal(on_lanes(lambda k, x: found[0].combine(k, found[0].identity(k, 8), x), a), a)
    if dtype != np.float32 or numpy is not np.multiply:
        total = a[0]
        for number in a[1:]:
            total = numpy(np.array([total], dtype), np.array([number], dtype))[0]
        whole = on_lanes(lambda k, x: k.splat(found[0].across(k, x), 8), a)
        np.testing.assert_array_equal(whole, np.full(8, total))


def test_halves_are_summed_in_single_precision():
    found = combiners(_reduced(arith.AddfOp, f16))
    assert found is not None and (found[0].dtype, found[0].neutral) == ("f32", 0.0)


@pytest.mark.parametrize(
    "body",
    [
        lambda b: [b.op(arith.SubfOp, b.args[1], b.args[0])],  # the order matters
        lambda b: [b.op(arith.AddfOp, b.args[1], b.args[1])],
        lambda b: [b.op(arith.AddfOp, b.args[0], b.args[0])],
        lambda b: [b.op(arith.AddfOp, b.args[1], b.op(arith.MulfOp, b.args[0], b.args[1]))],
        lambda b: [b.args[1]],
    ],
)
def test_what_is_no_combination(body: Callable[[Any], Any]):
    p = Program((4, 8))
    value = p.generic([p.x[0]], [p.empty(4)], [dims_map(2, [0, 1]), dims_map(2, [0])], "pr", body)[0]
    assert combiners(_generic(value)) is None


# accesses -------------------------------------------------------------------------------------------------------------


def _read(p: Program, value: SSAValue) -> tuple[DispatchView, AffineMap, tuple[Dim, ...]]:
    view = p.dispatch(p.matmul(value, p.x[-1]))
    root = view.root_view
    assert root is not None
    return view, root.input_maps[0], tuple(root.loops(view.shapes))


def test_an_operand_behind_moves_is_part_of_a_binding():
    p = Program((9, 12), (8, 5))
    part = p.slice(p.x[0], [2, 3], [6, 8])
    view, map_, extents = _read(p, part)
    found = linear_access(view, part, map_, extents)
    assert found is not None and found.source is p.x[0]
    assert [found.flat.terms.get(loop, 0) for loop in range(3)] == [12, 0, 1] and found.flat.constant == 27
    assert contiguous_reads(view, part, map_, 2, extents) == 1 and contiguous_reads(view, part, map_, 0, extents) == 0
    assert plain_access(access_segments(view, part, map_, extents)) == found


def test_what_is_computed_is_in_no_binding():
    p = Program((6, 8), (8, 5))
    made = p.unary(p.x[0])
    view, map_, extents = _read(p, made)
    assert access_segments(view, made, map_, extents) == () and linear_access(view, made, map_, extents) is None


def test_parts_of_a_concat_are_segments():
    p = Program((6, 3), (6, 5), (8, 5))
    joined = p.concat(p.x[0], p.x[1])
    view, map_, extents = _read(p, joined)
    segments = access_segments(view, joined, map_, extents)
    assert [segment.access.source for segment in segments] == list(p.x[:2])
    assert linear_access(view, joined, map_, extents) is None
    assert loop_boundaries(view, joined, map_, 2, extents) == (3,)
    assert loop_boundaries(view, joined, map_, 2, extents, step=3) == (3,)
    assert loop_boundaries(view, joined, map_, 2, extents, step=2) == ()
    assert contiguous_reads(view, joined, map_, 2, extents) == 2


def test_a_loop_in_too_many_pieces_is_left_whole():
    p = Program((4, 2 * MOST_PIECES), (2 * MOST_PIECES, 5))
    parts = [p.slice(p.x[0], [0, 2 * i], [4, 2]) for i in range(MOST_PIECES)]
    joined = p.concat(*[p.unary(part) for part in parts])
    view, map_, extents = _read(p, joined)
    assert len(loop_boundaries(view, joined, map_, 2, extents)) < MOST_PIECES


def _loops(view: DispatchView) -> ContractionLoops:
    found = contraction_loops(view)
    assert not isinstance(found, Refusal)
    return found


def _narrow(m: int = 16, k: int = 12, n: int = 32, *, turned: bool = False) -> ContractionLoops:
    p = Program((k, m) if turned else (m, k), (k, n), arguments=[i16, i8], element=i32, constants=[1])
    maps = [dims_map(3, [2, 0] if turned else [0, 2]), dims_map(3, [2, 1]), dims_map(3, [0, 1])]
    value = p.multiply_add(p.x[0], p.x[1], p.zeros(m, n, value=0), maps, "ppr")
    return _loops(p.dispatch(value))


def test_which_reductions_go_in_pairs():
    straight, turned = _narrow(), _narrow(turned=True)
    assert straight.narrow and reads_as_stored(straight)
    assert (
        not reads_across_memory(straight)
        and reads_across_memory(turned)
        and not reads_across_memory(_narrow(k=1, turned=True))
    )
    assert takes_pairs(straight, "linear", "constant") and takes_pairs(straight, "linear", "packed")
    assert not takes_pairs(straight, "linear", "direct") and not takes_pairs(straight, "pulled", "constant")
    assert not takes_pairs(turned, "linear", "constant") and takes_pairs(turned, "packed", "constant")
    p = Program((16, 12), (12, 32))
    floats = _loops(p.dispatch(p.matmul(p.x[0], p.x[1])))
    assert not takes_pairs(floats, "packed", "packed") and not reads_across_memory(floats) and reads_as_stored(floats)


def _plan(p: Program, value: SSAValue) -> ContractionPlan:
    found = plan_contraction(_loops(p.dispatch(value)), AVX2)
    assert not isinstance(found, Refusal)
    return found


@pytest.mark.parametrize(("k", "slack"), [(12, 1), (13, 1), (13, 4), (16, 8)])
def test_columns_of_a_panel_lie_step_by_step(k: int, slack: int):
    p = Program((16, k), (k, 48))
    plan = _plan(p, p.matmul(p.x[0], p.x[1]))
    steps = -(-k // slack) * slack
    assert column_strides(plan, slack=slack) == [plan.width, plan.width * steps]


def test_the_reduction_is_cut_where_an_operand_is():
    p = Program((16, 8), (3, 48), (5, 48))
    plan = _plan(p, p.matmul(p.x[0], p.concat(p.x[1], p.x[2], axis=0)))
    assert reduction_cuts(plan, plan.loops.rhs) == [(3,)] and reduction_cuts(plan, plan.loops.rhs, step=2) == [()]


# results --------------------------------------------------------------------------------------------------------------


def _paths(p: Program, *results: SSAValue) -> Any:
    return result_paths(p.dispatch(*results))


def test_results_follow_from_the_root_by_its_loops():
    p = Program((6, 5), (5, 8), (8,))
    product = p.matmul(p.x[0], p.x[1])
    biased = p.bias(product, p.x[2], 1)
    turned = p.unary(biased, permutation=(1, 0))
    paths = _paths(p, biased, turned, product)
    assert [path.coordinates for path in paths] == [(0, 1), (1, 0), (0, 1)]
    assert [path.position for path in paths] == [0, 1, 2] and [path.value for path in paths] == [
        biased,
        turned,
        product,
    ]


def test_reshapes_make_coordinates_of_coordinates():
    p = Program((6, 5), (5, 8))
    product = p.matmul(p.x[0], p.x[1])
    flat = p.unary(p.collapse(product))
    split = p.unary(p.expand(product, 6, 2, 4, groups=[[0], [1, 2]]))
    one, two = _paths(p, flat, split)
    assert one.coordinates == (Joined((0, 1), (6, 8)),)
    assert two.coordinates == (0, DelinearizedIndex(1, (2, 4), 0), DelinearizedIndex(1, (2, 4), 1))


def test_what_does_not_follow_is_refused():
    p = Program((6, 5), (5, 8), (6, 8))
    product = p.matmul(p.x[0], p.x[1])
    found = _paths(p, product, p.unary(p.x[2]))
    assert isinstance(found, Refusal) and found.code == "result-beside-root" and "result 1" in found.detail
    q = Program((6, 5))
    none = _paths(q, q.pad(q.x[0], [1, 0], [0, 0]))
    assert isinstance(none, Refusal) and none.code == "no-root"


# directions -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize(
    "found", [Direction(1, 1, 3, 4), Direction(2, 1, 3, 4), Direction(1, 2, 5, 1), Direction(3, 2, 1, 1)]
)
def test_steps_under_positions(found: Direction, count: int):
    reached = {p * found.along + w * found.window for p in range(count) for w in range(found.positions)}
    assert found.steps(count) == max(reached) + 1


@pytest.mark.parametrize(
    ("first", "scale", "size"), [(-1, 1, 9), (-3, 2, 7), (0, 1, 4), (-20, 1, 3), (2, 1, 5), (9, 1, 4)]
)
@pytest.mark.parametrize("steps", [0, 1, 12])
def test_steps_inside_of_the_image(first: int, scale: int, size: int, steps: int):
    buffers: Any = SimpleNamespace(kernel=KernelBuilder("k", machine("avx2")), operand=lambda size: size)
    for before in (0, 1, 5):
        found: Any = Direction(1, 1, 3, 4, first, scale, size).inside(buffers, before, steps)
        inside = [i for i in range(steps) if 0 <= first + scale * (before + i) < size]
        assert list(range(*found)) == inside and 0 <= found[0] <= found[1] <= steps
    assert Direction(1, 1, 3, 4).inside(buffers, 2, steps) == (0, steps)


def _axis(inner: int, extent: Dim) -> Any:
    return SimpleNamespace(inner=inner, extent=extent, loops=(inner,))


@pytest.mark.parametrize(
    ("strides", "expected"),
    [
        ((8, 4), Direction(2, 1, 3, 4)),
        ((4, 4), Direction(1, 1, 3, 4)),
        ((6, 4), Direction(3, 2, 3, 2)),
        ((0, 0), Direction(0, 0, 3, 1)),
        ((-4, 4), None),
    ],
)
def test_a_direction_has_the_steps_of_both(strides: tuple[int, int], expected: Direction | None):
    access: Any = SimpleNamespace(bounds=(), stride=lambda loop: strides[loop])
    assert direction(access, _axis(0, 7), _axis(1, 3), [0, 1]) == expected
    assert direction(access, _axis(0, symbol("n")), _axis(1, 3), [0, 1]) == expected
    assert direction(access, _axis(0, 7), _axis(1, symbol("n")), [0, 1]) is None


@pytest.mark.parametrize("counts", [(2, 1), (1, 1), (6, 4), (3, 0)])
def test_the_steps_of_lines_of_any_length(counts: tuple[int, int]):
    for line in (symbol("w"), add(mul(3, symbol("w")), 6), mul(symbol("w"), symbol("c"))):
        found = in_steps([mul(line, count) for count in counts])
        assert found is not None and [mul(found[0], count) for count in found[1]] == [mul(line, n) for n in counts]
        assert gcd(*found[1]) == 1
    assert in_steps([symbol("w"), symbol("h")]) is None and in_steps([symbol("w"), 4]) is None
    assert in_steps([mul(symbol("w"), -1)]) is None


@pytest.mark.parametrize(
    ("terms", "constant", "size", "expected"),
    [
        ({0: 2, 1: 1}, -1, 9, Direction(2, 1, 3, 4, -1, 1, 9)),
        ({0: 4, 1: 2}, -3, 9, Direction(2, 1, 3, 4, -3, 2, 9)),
        ({0: 2, 1: 2}, -1, 9, None),  # other steps than those in memory
        ({0: 2, 1: 1, 2: 1}, -1, 9, None),  # depends on another loop
        ({0: 2, 1: 1}, -1, symbol("n"), Direction(2, 1, 3, 4, -1, 1, symbol("n"))),
        ({0: 2, 1: 1}, add(mul(6, symbol("b")), -1), 9, Direction(2, 1, 3, 4, add(mul(6, symbol("b")), -1), 1, 9)),
        ({0: 2}, -1, 9, None),
    ],
)
def test_the_bound_of_a_direction(terms: dict[int, int], constant: Dim, size: Dim, expected: Direction | None):
    bound = SimpleNamespace(coordinate=SimpleNamespace(terms=terms, constant=constant), size=size, border=None)
    access: Any = SimpleNamespace(bounds=(bound,), stride=lambda loop: (8, 4, 0)[loop])
    assert direction(access, _axis(0, 7), _axis(1, 3), [0, 1, 2]) == expected
    border = Border("edge", 4)
    beyond: Any = SimpleNamespace(bounds=(SimpleNamespace(**vars(bound) | {"border": border}),), stride=access.stride)
    wanted = replace(expected, border=border) if expected is not None else None
    assert direction(beyond, _axis(0, 7), _axis(1, 3), [0, 1, 2]) == wanted
    twice: Any = SimpleNamespace(bounds=(bound, bound), stride=access.stride)
    assert direction(twice, _axis(0, 7), _axis(1, 3), [0, 1]) is None


# walks ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "walked", "moving", "expected"),
    [
        ((4, 6, 8), 1, [], ((0,), 2)),
        ((4, 6, 8), 2, [], ((0, 1), None)),
        ((4, 6, 8), 0, [2], ((1, 2), None)),
        ((4, 6, 1), 0, [], ((), 1)),
        ((1, 6, 1), 1, [], ((), None)),
    ],
)
def test_loops_of_a_walk(shape: tuple[int, ...], walked: int, moving: Sequence[int], expected: Any):
    p = Program(shape)
    root = StructuredOp(_generic(p.unary(p.x[0])))
    assert line_loops(root, shape, walked, moving) == expected


@pytest.mark.parametrize(("lane", "lanes", "grid"), [(2, 8, (4, 3)), (2, 4, (4, 5)), (None, 1, (4, 1))])
def test_the_grid_of_a_walk(lane: int | None, lanes: int, grid: tuple[int, ...]):
    p = Program((4, 6, 70))
    plan = LinesPlan(
        view=p.dispatch(p.unary(p.x[0])), workgroups=1, outer=(0,), lane=lane, lanes=lanes, extents=(4, 6, 70)
    )  # pyright: ignore[reportCallIssue]
    assert plan.grid == grid and plan.block == 4 * lanes


# windows and small maps -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("taps", [1, 2, 3, 5, 7])
def test_columns_are_combined_across_and_shared(taps: int):
    found = combiners(_reduced(arith.AddfOp, f32))
    assert found is not None
    columns = np.random.default_rng().integers(-9, 9, (9, 8)).astype(np.float32)
    for first in (0, 2):
        places = tuple((i,) for i in range(first, first + taps))

        def total(k: KernelBuilder, *vectors: Any) -> Any:
            across = Across(k, found[0], {(i,): vector for i, vector in enumerate(vectors)})
            once = across.of(places)  # noqa: B023
            assert across.of(places) is once  # noqa: B023
            return once

        np.testing.assert_array_equal(on_lanes(total, *columns), columns[first : first + taps].sum(0))


@pytest.mark.parametrize(("inputs", "outputs", "v"), [(4, 4, 0), (2, 4, 0), (1, 8, 0), (8, 8, 0), (4, 2, 0), (3, 8, 1)])
def test_each_lane_gets_the_channel_of_its_group(inputs: int, outputs: int, v: int):
    groups = Groups(Axis((0,), (inputs,)), outputs, inputs)
    sources = groups.sources(v, 8)
    image = np.random.default_rng().standard_normal(64).astype(np.float32)
    for step in range(inputs):

        def spread(k: KernelBuilder, *_: Any) -> Any:
            columns = GroupColumns(k, groups, 8)
            return columns.spread(k.address(k.binding(0, "f32", 64), 0), v, None, step)  # noqa: B023

        k = KernelBuilder("k", AVX2)
        k.store(k.binding(1, "f32", 8, writable=True), 0, spread(k))
        out = np.zeros(8, np.float32)
        run(k.finish(), [image, out])
        np.testing.assert_array_equal(out, image[[source + step for source in sources]])


@pytest.mark.parametrize(
    "matrix",
    [
        [
            [4, 0, -5, 0, 1, 0],
            [0, -4, -4, 1, 1, 0],
            [0, 4, -4, -1, 1, 0],
            [0, -2, -1, 2, 1, 0],
            [0, 2, -1, -2, 1, 0],
            [0, 4, 0, -5, 0, 1],
        ],
        [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]],
        [[0.25, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6], [0, 0, 1]],
        [[1, 0], [0, -3.5]],
        [[2.0]],
    ],
)
def test_a_matrix_is_applied_with_what_rows_share(matrix: list[list[float]]):
    rows = np.random.default_rng().standard_normal((len(matrix[0]), 8)).astype(np.float64)
    for number, row in enumerate(matrix):
        found = on_lanes(lambda k, *vectors: mapped(k, matrix, vectors)[number], *rows)  # noqa: B023
        np.testing.assert_allclose(found, np.array(row) @ rows, rtol=1e-12, atol=1e-12)


# blocks ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("full", [12, 13, symbol("n")])
def test_blocks_cover_a_loop(full: Dim):
    tile = Tile(full, 4, "block", None if full == 12 else "rest")
    for n in (1, 4, 13):
        length = evaluate(full, {"n": n})
        count = evaluate(tile.count, {"n": n})
        starts = [evaluate(tile.offset, {"block": i}) for i in range(count)]
        assert starts == list(range(0, length, 4))
    assert tile.extent == 4 if full == 12 else evaluate(tile.extent, {"rest": 3}) == 3


def test_boxes_that_do_not_move():
    assert Box((0, 0), (3, 4)).begins_at_zero and not Box((0, symbol("b", 0)), (3, 4)).begins_at_zero


def test_buffers_of_dead_values_serve_later_ones():
    p = Program((4,), (4,), (4,), arguments=[f32, f32, i32])
    a, b, c = p.x
    scratch = Buffers(KernelBuilder("k", AVX2))
    first = scratch.take(a, 100)
    assert scratch.take(b, 50) is not first and scratch.held[a] is first
    scratch.release(a)
    scratch.release(a)
    assert scratch.take(c, 50) is not first  # of another type
    small = scratch.held.pop(b)
    scratch.free.append(small)
    assert scratch.take(a, 40) is small and scratch.take(b, 60) is first  # the smallest that fits
