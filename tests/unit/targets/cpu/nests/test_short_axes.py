"""Transposes of few elements: a short axis that is read, or read and written, along memory is moved a vector at a time,
beside those of other places."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects import arith

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


@pytest.mark.parametrize("width", [2, 3, 5, 7])
def test_a_short_axis_that_stays_last_is_a_vector(width: int) -> None:
    """Rows of a tile are those that step the least, of the longer ones."""
    found = _schedule((3, 20, 30, width), (2, 1, 0, 3))
    assert found.moved and found.groups[0].lanes == width
    assert [found.staging.axes.extents[axis] for axis in found.tiled_loops] == [20]
    assert farthest_step(found.staging, found.tiled_loops) == 30 * width


@pytest.mark.parametrize("width", [8, 9, 16])
def test_a_vector_of_them_joins_nothing(width: int) -> None:
    assert not _schedule((20, 30, 40, width), (2, 0, 1, 3)).moved


@pytest.mark.parametrize("width", [2, 3, 5, 7])
def test_rows_that_follow_each_other_are_one_run(width: int) -> None:
    """Vectors go over the ends of short rows where nothing is moved."""
    found = _schedule((20, 30, width), (0, 1, 2))
    assert (found.moved, found.groups[0].lanes, found.tiled_loops) == (False, 8, [])
