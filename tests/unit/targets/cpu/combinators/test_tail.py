"""Whole panels in a loop, the narrower one at the end."""

from __future__ import annotations

import pytest

from fuseline.targets.cpu.combinators.tail import live_lanes, over_panels

from .visits import Visits, visited

WIDTH = 4


def panels(extent: int, within: tuple[int, int], *, anywhere: bool = False) -> list[tuple[int, int]]:
    whole, rest = divmod(extent, WIDTH)
    every = [(number, WIDTH) for number in range(whole)] + ([(whole, rest)] if rest else [])
    return [(number, size) for number, size in every if within[0] <= number < within[1]]


def pairs(found: list[int]) -> list[tuple[int, int]]:
    return list(zip(found[::2], found[1::2], strict=True))


@pytest.mark.parametrize("extent", [0, 1, 3, 4, 5, 8, 11, 12])
def test_panels_of_an_extent(extent: int):
    every = (0, -(-extent // WIDTH))
    known = visited(lambda v: over_panels(v.kernel, divmod(extent, WIDTH), WIDTH, every, v.note))

    def at_run_time(v: Visits) -> None:
        k = v.kernel
        whole = k.div(k.size(0), WIDTH)
        over_panels(k, (whole, k.sub(k.size(0), k.mul(whole, WIDTH))), WIDTH, (0, k.ceil_div(k.size(0), WIDTH)), v.note)

    assert pairs(known) == pairs(visited(at_run_time, [extent])) == panels(extent, every)


@pytest.mark.parametrize("within", [(0, 1), (1, 3), (2, 3), (1, 1)])
def test_a_range_of_panels(within: tuple[int, int]):
    def emit(v: Visits) -> None:
        over_panels(v.kernel, (2, 3), WIDTH, (v.kernel.size(0), v.kernel.size(1)), v.note)

    assert pairs(visited(emit, within)) == panels(11, within)


@pytest.mark.parametrize("within", [(0, 9), (2, 9), (3, 9), (5, 9), (0, 2)])
def test_ranges_that_begin_beyond_the_last_panel(within: tuple[int, int]):
    def emit(v: Visits) -> None:
        over_panels(v.kernel, (2, 3), WIDTH, (v.kernel.size(0), v.kernel.size(1)), v.note, anywhere=True)

    assert pairs(visited(emit, within)) == panels(11, within)


@pytest.mark.parametrize(
    ("elements", "expected"), [(0, []), (3, [3]), (8, [None]), (16, [None, None]), (21, [None, None, 5])]
)
def test_lanes_that_are_live(elements: int, expected: list[int | None]):
    assert live_lanes(Visits().kernel, elements, 8, 24) == expected


@pytest.mark.parametrize("elements", [0, 3, 8, 21, 24])
def test_lanes_that_are_live_at_run_time(elements: int):
    found = visited(
        lambda v: [v.note(n) for n in live_lanes(v.kernel, v.kernel.size(0), 8, 24) if n is not None], [elements]
    )
    assert found == [min(max(elements - v, 0), 8) for v in (0, 8, 16)]
