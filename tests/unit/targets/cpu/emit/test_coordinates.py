"""Coordinates per lane, and what is known of them while a kernel is built."""

from __future__ import annotations

from typing import Any

import pytest

from fuseline.ir.dim import Dim, mul, symbol
from fuseline.targets.cpu.emit.coordinates import (
    AnyIndex,
    DelinearizedIndex,
    Index,
    as_index,
    multiple_of,
    static_upper_bound,
    stays_in_run,
    whole_split,
)
from fuseline.targets.cpu.emit.inside import both, decided, run_inside
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from tests.unit.targets.cpu.combinators.visits import Visits, visited


def _builder() -> KernelBuilder:
    return KernelBuilder("k", machine("avx2"))


def _part(whole: AnyIndex, position: int) -> AnyIndex:
    return DelinearizedIndex(whole, (4, 7), position)


def test_coordinates_that_agree() -> None:
    assert Index(3).uniform and not Index(3, 1).uniform and not Index(0, 0, _builder().iota(8)).uniform
    assert Index(3, 2).key == Index(3, 2).key != Index(3, 1).key
    whole: AnyIndex = Index(5, 1)
    part = _part(whole, 1)
    assert not part.uniform and _part(Index(5), 1).uniform
    assert part.key == _part(Index(5, 1), 1).key != _part(whole, 0).key
    assert as_index(whole) is whole and as_index(part) is part and as_index(9).key == Index(9).key


@pytest.mark.parametrize(
    ("lo", "step", "factor", "offset", "divisor"),
    [(0, 1, 6, 0, 2), (8, 4, 1, 0, 4), (8, 4, 3, 6, 2), (0, 8, 1, 5, 1), (16, 16, 2, 0, 32)],
)
def test_what_surely_divides(lo: int, step: int, factor: int, offset: int, divisor: int) -> None:
    """A power of two that divides every value, as large as expected."""
    k, seen = _builder(), list[Any]()
    k.loop(lo, k.size(0), step, lambda i: seen.append(k.add(k.mul(i, factor), offset)) or ())
    found = multiple_of(seen[0])
    assert found == divisor and all((i * factor + offset) % found == 0 for i in range(lo, lo + 9 * step, step))


def test_numbers_and_what_nobody_knows() -> None:
    k = _builder()
    assert (multiple_of(24), multiple_of(0), multiple_of(0, 64), multiple_of(k.size(0))) == (8, 1 << 20, 64, 1)
    assert multiple_of(k.min(k.mul(k.size(0), 12), 18)) == 2  # of the limit, a power of two, and both sides


@pytest.mark.parametrize(
    ("whole", "innermost", "lanes", "stays"),
    [
        (Index(8, 1), 16, 8, True),
        (Index(4, 1), 16, 8, False),  # begins in the middle
        (Index(8, 1), 12, 8, False),  # runs end in the middle
        (Index(8, 2), 16, 8, False),
        (Index(8, 1), symbol("n"), 8, False),
    ],
)
def test_vectors_that_stay_in_a_run(whole: Index, innermost: Dim, lanes: int, stays: bool) -> None:
    assert stays_in_run(whole, innermost, lanes) == stays
    if stays:
        places = [whole.base + whole.stride * lane for lane in range(lanes)]  # pyright: ignore
        assert len({place // innermost for place in places}) == 1  # pyright: ignore


def _split(sizes: tuple[int, ...], whole: Index | None = None) -> list[Any]:
    return [DelinearizedIndex(whole or Index(7, 1), sizes, i) for i in range(len(sizes))]


@pytest.mark.parametrize(
    ("index", "dims", "at", "count"),
    [
        (_split((4, 5)), (4, 5), 0, 2),
        (_split((4, 5)), (9, 5), 0, 2),  # nothing counts in the first
        (_split((4, 5)), (4, 6), 0, 0),
        ([Index(1), *_split((4, 5, 6))], (3, 4, 5, 6), 1, 3),
        (_split((4, 5))[1:], (5,), 0, 0),
        (_split((4, 5))[:1], (4,), 0, 0),
        ([_split((4, 5))[0], Index(2)], (4, 5), 0, 0),
        ([_split((4, 5))[0], _split((4, 5), Index(3))[1]], (4, 5), 0, 0),
        ([Index(2)], (4,), 0, 0),
    ],
)
def test_coordinates_that_are_one_index(index: list[Any], dims: tuple[int, ...], at: int, count: int) -> None:
    assert whole_split(index, dims, at) == count


@pytest.mark.parametrize(
    ("dims", "most"),
    [((), 1), ((3, 4), 12), ((symbol("n", 1, 5), 4), 20), ((mul(symbol("n", 1, 5), 2),), 10), ((0, 7), 0)],
)
def test_the_most_elements(dims: tuple[Dim, ...], most: int) -> None:
    assert static_upper_bound(dims) == most
    assert static_upper_bound((*dims, symbol("m"))) is None


@pytest.mark.parametrize(("base", "stride"), [(0, 1), (-3, 1), (5, 2), (9, 0), (-9, 1), (20, 1), (3, 3)])
@pytest.mark.parametrize("live", [1, 4, 8])
def test_what_is_known_of_a_run(base: int, stride: int, live: int) -> None:
    inside = [0 <= base + stride * lane < 10 for lane in range(live)]
    found = decided(Index(base, stride), 10, live)
    assert found is (True if all(inside) else False if not any(inside) else None) or (found is None and stride > 1)
    assert decided(Index(base, stride), _builder().size(0), live) is None
    assert decided(Index(base, -1), 10, live) is None


@pytest.mark.parametrize("base", [-2, 0, 3, 6, 9])
@pytest.mark.parametrize("live", [1, 4])
def test_conditions_that_find_out(base: int, live: int) -> None:
    def emit(v: Visits) -> None:
        k = v.kernel
        start = k.sub(k.size(0), 5)
        conditions = run_inside(k, Index(start, 2), k.size(1), live)
        v.note(k.select(both(k, *conditions), 1, 0))

    expected = all(0 <= base + 2 * lane < 10 for lane in range(live))
    assert visited(emit, [base + 5, 10]) == [int(expected)]


def test_a_constant_condition_is_left_out() -> None:
    k = _builder()
    true, false, other = k.const(1, "i1"), k.const(0, "i1"), k.compare("lt", k.size(0), 3)
    assert both(k, true, other) is other is both(k, other, true)
    assert both(k, false, other) is false is both(k, other, false)
