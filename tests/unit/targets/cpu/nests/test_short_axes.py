"""Transposes of few elements: a short axis that is read, or read and written, along memory is moved a vector at a time,
beside those of other places."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import i8

from fuseline.ir.dim import Dim, product
from fuseline.targets.cpu.families.nests.collapsed_loops import farthest_step, neighbours
from fuseline.targets.cpu.families.nests.schedule import Schedule, build_schedule
from fuseline.targets.cpu.families.nests.stages import Staging
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from tests.draws import RNG
from tests.graphs.program import Program

from .generics import empty, function, generic, tensor
from .texts import check

AVX2 = machine("avx2")


def _transpose(source: Sequence[int], order: Sequence[int], element: str, body: str = "", made: str = "%i0") -> str:
    """`y[d0, d1, ..] = x[..]`, dimension `order[i]` of the source being `i` of the result."""
    shape = tuple(source[i] for i in order)
    read = ", ".join(f"d{order.index(i)}" for i in range(len(source)))
    written = ", ".join(f"d{i}" for i in range(len(source)))
    t, s = tensor(shape, element), tensor(tuple(source), element)
    op = generic("%y", [("%x", s)], [("%e", t)], [read, written], "p" * len(shape), body, [(made, element)])
    return function([("x", tuple(source), element)], [], empty("e", shape, element) + "\n" + op, [("%y", t)])


def _drawn(rank: int, width: int, last: str) -> tuple[list[int], list[int]]:
    """Sizes of a source and the order of its dimensions in the result; `last` says which of them is `width`."""
    source = [int(RNG.integers(1, 12)) for _ in range(rank)]
    order = [int(i) for i in RNG.permutation(rank)]
    if last == "kept":
        order = [*(i for i in order if i != rank - 1), rank - 1]
    source[order[-1] if last == "written" else -1] = width
    return source, order


@pytest.mark.parametrize("element", ["f32", "f64", "f16", "i8", "i1"])
@pytest.mark.parametrize("last", ["read", "written", "kept"])
@pytest.mark.parametrize("rank", [2, 3, 4])
def test_random_transposes(rank: int, last: str, element: str) -> None:
    source, order = _drawn(rank, int(RNG.integers(2, 9)), last)
    check(_transpose(source, order, element))


@pytest.mark.parametrize("element", ["f32", "f64", "f16", "i8"])
@pytest.mark.parametrize("width", [2, 3, 5, 7, 8, 11, 15])
def test_random_channels_that_are_interleaved(width: int, element: str) -> None:
    """Vectors along what lies before them, of all sizes, less than one too."""
    lines, pixels = int(RNG.integers(1, 4)), int(RNG.integers(4, 70))
    check(_transpose((lines, width, pixels), (0, 2, 1), element))


@pytest.mark.parametrize("element", ["f32", "f16", "i8"])
@pytest.mark.parametrize("rank", [3, 4])
def test_random_rows_of_vectors(rank: int, element: str) -> None:
    check(_transpose(*_drawn(rank, int(RNG.integers(9, 150)), "kept"), element))


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("last", ["read", "kept"])
def test_every_isa(last: str, isa: str) -> None:
    source, order = _drawn(3, int(RNG.integers(2, 9)), last)
    check(_transpose(source, order, "f32"), isa=machine(isa), proved=False, compiled=False)


@pytest.mark.parametrize("last", ["read", "kept"])
def test_an_epilogue_is_computed_on_the_way(last: str) -> None:
    source, order = _drawn(3, int(RNG.integers(2, 8)), last)
    check(_transpose(source, order, "f32", "%s = arith.addf %i0, %i0 : f32", "%s"))


def _schedule(source: tuple[int, ...], order: tuple[int, ...]) -> Schedule:
    p = Program(source)
    return build_schedule(Staging(p.dispatch(p.unary(p.x[0], arith.NegfOp, order))), AVX2)


@pytest.mark.parametrize("width", [2, 3, 5, 7])
def test_a_short_axis_that_is_read_is_the_height_of_a_tile(width: int) -> None:
    """Workgroups go on along what lies beside it."""
    found = _schedule((20, 30, 40, width), (2, 0, 3, 1))
    assert (found.tile, found.moved, found.groups[0].lanes) == (width, False, 8)
    sizes = [[found.staging.axes.extents[axis] for axis in run] for run in found.collapsed_loops]
    assert sizes == [[20], [40]]
    assert neighbours(found.staging, found.tiled_loops) == found.collapsed_loops[-1]


def _sizes(found: Schedule) -> tuple[list[Dim], list[list[Dim]]]:
    """The sizes of the tiled run, and of the other runs of the grid."""
    extents = found.staging.axes.extents
    return [extents[axis] for axis in found.tiled_loops], [
        [extents[axis] for axis in run] for run in found.collapsed_loops
    ]


@pytest.mark.parametrize("width", [2, 3, 5, 7])
@pytest.mark.parametrize(
    ("source", "order", "tiled", "others"),
    [
        ((40, 20, 30), (2, 1, 0, 3), [40], [[20], [30]]),  # 20 stands beside nowhere
        ((20, 40, 30), (0, 2, 1, 3), [40], [[20], [30]]),
        ((20, 30, 40), (0, 2, 1, 3), [40], [[20], [30]]),
        ((20, 40, 30), (2, 0, 1, 3), [20, 40], [[30]]),
        ((3, 20, 30), (2, 1, 0, 3), [30], [[20], [3]]),
        ((3, 20, 5), (2, 1, 0, 3), [20], [[5], [3]]),  # those beside are short
    ],
)
def test_a_short_axis_that_stays_last_is_a_vector(
    source: tuple[int, ...], order: tuple[int, ...], tiled: list[int], others: list[list[int]], width: int
) -> None:
    """Rows of a tile lie beside it where it is read or written, if that is long enough: of both, those that step less.
    Workgroups go on along the other one."""
    found = _schedule((*source, width), order)
    assert found.moved and found.groups[0].lanes == width and found.tile == 16
    assert _sizes(found) == (tiled, others)


@pytest.mark.parametrize(("beside", "rows"), [(256, 8), (272, 16)])
def test_rows_of_whole_pages_are_fewer(beside: int, rows: int) -> None:
    """They are in one set of the cache."""
    found = _schedule((beside, beside, 4), (1, 0, 2))
    assert found.moved and farthest_step(found.staging, found.tiled_loops) == 4 * beside and found.tile == rows


@pytest.mark.parametrize(
    ("width", "moved"), [(8, True), (9, True), (50, True), (256, True), (257, False), (512, False)]
)
@pytest.mark.parametrize("order", [(2, 0, 1, 3), (2, 1, 0, 3), (0, 2, 1, 3)])
def test_rows_of_vectors_are_moved_beside_others_up_to_a_kibibyte(
    order: tuple[int, ...], width: int, moved: bool
) -> None:
    found = _schedule((20, 30, 40, width), order)
    assert (found.moved, found.groups[0].lanes) == (moved, 8)
    assert not moved or found.tile > 1


@pytest.mark.parametrize(("row", "lanes"), [((28,), 28), ((12, 5), 32), ((4, 7), 28), ((5,), 5), ((33,), 32)])
def test_rows_of_bytes_are_a_vector_as_far_as_one_goes(row: tuple[int, ...], lanes: int) -> None:
    """Axes that follow each other where they are read, too, are one row."""
    p = Program((20, 30, *row), element=i8)
    loops = (1, 0, *range(2, 2 + len(row)))
    found = build_schedule(Staging(p.dispatch(p.moved(p.x[0], loops, 30, 20, *row))), AVX2)
    assert found.moved and found.groups[0].lanes == lanes
    assert [found.staging.axes.extents[axis] for axis in found.vector_loops] == list(row)


@pytest.mark.parametrize("width", [3, 8, 50, 256])
def test_rows_that_are_read_as_they_are_written_are_not_moved(width: int) -> None:
    p = Program((20, 30, width), (width,))
    assert not build_schedule(Staging(p.dispatch(p.bias(p.x[0], p.x[1], 2))), AVX2).moved


@pytest.mark.parametrize("width", [5, 8, 12, 15])
def test_channels_less_than_a_vector_of_bytes_join_their_pixels(width: int) -> None:
    """Those of 8 have not joined yet: they would be a vector of floats."""
    p = Program((20, width, 24), element=i8)
    found = build_schedule(Staging(p.dispatch(p.moved(p.x[0], (0, 2, 1), 20, 24, width))), AVX2)
    assert (found.interleaved, found.groups[0].lanes) == (width, 8)
    assert product(found.staging.axes.extents[axis] for axis in found.vector_loops) == 24 * width


@pytest.mark.parametrize("width", [2, 3, 5, 7])
def test_rows_that_follow_each_other_are_one_run(width: int) -> None:
    """Vectors go over the ends of short rows where nothing is moved."""
    found = _schedule((20, 30, width), (0, 1, 2))
    assert (found.moved, found.groups[0].lanes, found.tiled_loops) == (False, 8, [])
