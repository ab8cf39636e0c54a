"""What an access touches, as the bounds checker sees it: active lanes, live ones, workgroups, chosen addresses."""

from __future__ import annotations

from typing import Any

import pytest

from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds

from .index_algebra import (
    AVX2,
    Builder,
)

LENGTHS: list[tuple[Any, int]] = [(None, 9), (8, 9), (7, 8), (1, 2), ("size", 6)]


def test_vectors_of_different_masks_are_told_apart():
    """A masked vector touches `active` elements, a whole one all its lanes."""

    def count(active: Any, extent: int, store: bool) -> int:
        k = Builder("kernel", AVX2)
        memory = k.binding(0, "f32", extent, writable=True)
        length = k.size(0) if active == "size" else active
        if store:
            k.store(memory, 2, k.splat(k.const(1.5, "f32"), 8), active=length)
        else:
            k.load(memory, 2, 8, active=length)
        return len(check_bounds(k.finish(), [5]))

    for store in (False, True):
        for active, last in LENGTHS:
            assert count(active, last + 1, store) == 0
            assert count(active, last, store) == 1


def test_what_has_no_active_lane_is_not_touched():
    """8 lanes at place 9 of 10 elements, of which `size - 4` are active."""

    def count(size: int) -> int:
        k = Builder("kernel", AVX2)
        k.load(k.binding(0, "f32", 10), 9, 8, active=k.sub(k.size(0), 4))
        return len(check_bounds(k.finish(), [size]))

    assert [count(size) for size in (3, 4, 5, 6)] == [0, 0, 0, 1]


def test_what_no_size_lets_happen_is_not_asked():
    """Element 7 of 5 is read where the size exceeds 7, element 0 where it does not."""

    def count(size: int) -> int:
        k = Builder("kernel", AVX2)
        memory = k.binding(0, "f32", 5)
        k.when(k.compare("gt", k.size(0), 7), lambda: (k.load(memory, 7), ())[1], lambda: (k.load(memory, 0), ())[1])
        return len(check_bounds(k.finish(), [size]))

    assert [count(size) for size in (0, 7, 8)] == [0, 0, 1]


@pytest.mark.parametrize("scatter", [False, True])
def test_lanes_that_are_not_live_are_not_read(scatter: bool):
    def places(active: Any, extent: int) -> list[str]:
        k = Builder("kernel", AVX2)
        memory, indices = k.binding(0, "f32", extent, writable=True), k.const((0, 9, 4, 7), "i64", 4)
        if scatter:
            k.scatter(memory, indices, k.splat(k.const(2.0, "f32"), 4), active=active)
        else:
            k.gather(memory, indices, active=active)
        return [p.detail.split()[4] for p in check_bounds(k.finish())]

    assert places(None, 10) == places(4, 10) == []
    assert places(None, 9) == ["9"]
    assert places(None, 7) == ["9", "7"]
    assert places(3, 7) == ["9"]
    assert places(1, 1) == []


def test_a_live_lane_tells_the_number_of_active_ones():
    """Lane `l` is read only if `active > l`, so `i = 4 - active` is at most `3 - l` there, and anything behind it."""
    for extent, count in ((4, 1), (3, 5)):
        k = Builder("kernel", AVX2)
        memory = k.binding(0, "f32", extent)

        def body(i: Any, k: Builder = k, memory: Any = memory) -> None:
            k.gather(memory, k.lane_indices(i, 1, 4), active=k.sub(4, i))
            k.load(memory, i)

        k.loop(0, 9, 1, body)
        assert len(check_bounds(k.finish())) == count


@pytest.mark.parametrize(("extent", "count"), [(7, 0), (6, 1)])
@pytest.mark.parametrize("store", [False, True])
def test_a_vector_that_is_read_has_an_active_element(extent: int, count: int, store: bool):
    """Of `4 - i` elements from `3 - i` on one is read only if `i` is less than 4."""
    k = Builder("kernel", AVX2)
    memory = k.binding(0, "f32", extent, writable=True)

    def body(i: Any) -> None:
        if store:
            k.store(memory, k.sub(3, i), k.splat(k.const(1.5, "f32"), 8), active=k.sub(4, i))
        else:
            k.load(memory, k.sub(3, i), 8, active=k.sub(4, i))

    k.loop(0, 9, 1, body)
    assert len(check_bounds(k.finish())) == count


@pytest.mark.parametrize(("at", "low", "high"), [("begin", 0, 5), ("end", 0, 6)])
def test_the_range_of_workgroups_lies_in_the_grid(at: str, low: int, high: int):
    def count(extent: int, shift: int) -> int:
        k = Builder("kernel", AVX2)
        k.load(k.binding(0, "f32", extent), k.sub(getattr(k, at), shift))
        return len(check_bounds(k.finish(), workgroups=6))

    assert count(high + 1, low) == 0
    assert (count(high, low), count(high + 1, low + 1)) == (1, 1)


def test_one_workgroup_is_the_default():
    k = Builder("kernel", AVX2)
    k.load(k.binding(0, "f32", 1), k.begin)
    assert check_bounds(k.finish()) == []


@pytest.mark.parametrize(("last", "count"), [(9, 0), (8, 1)])
@pytest.mark.parametrize("swapped", [False, True])
def test_the_second_address_is_read_where_the_condition_fails(last: int, count: int, swapped: bool):
    k = Builder("kernel", AVX2)
    memory, zero = k.binding(0, "f32", last + 1), k.scratch("f32", 1)

    def body(i: Any) -> None:
        if swapped:
            k.load(k.select_mem(k.compare("lt", i, 10), memory, i, zero, 0))
        else:
            k.load(k.select_mem(k.compare("ge", i, 10), zero, 0, memory, i))

    k.loop(0, 20, 1, body)
    assert len(check_bounds(k.finish())) == count


def test_the_choice_of_an_address_tells_nothing_about_the_next():
    k = Builder("kernel", AVX2)
    memory, zero = k.binding(0, "f32", 10), k.scratch("f32", 1)

    def body(i: Any) -> None:
        k.load(k.select_mem(k.compare("lt", i, 10), memory, i, zero, 0))
        k.load(memory, i)

    k.loop(0, 20, 1, body)
    assert len(check_bounds(k.finish())) == 1
