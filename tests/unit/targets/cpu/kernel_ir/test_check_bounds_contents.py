"""Places that a kernel loads are bounded by what the constant they come from holds, and by nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.cpu.kernel_ir.contents import Range
from fuseline.targets.cpu.kernel_ir.stored_ranges import range_of_bytes

EXTENT = 10


def unproved(
    contents: Mapping[int, Range],
    *,
    dtype: str = "i64",
    lanes: int = 1,
    active: int | None = None,
    shift: int = 0,
    writes: bool = False,
) -> int:
    """Problems of a kernel that reads 10 elements at the places in its first binding, `shift` further on."""
    k = KernelBuilder("kernel", machine("avx2"))
    table, x = k.binding(0, dtype, 32, writable=writes), k.binding(1, "f32", EXTENT)
    places = k.load(table, 0, lanes, active=active)
    k.gather(x, k.add(k.cast(places, "i64"), k.const(shift, "i64", lanes)))
    return len(check_bounds(k.finish(), contents=contents))


@pytest.mark.parametrize("dtype", ["i64", "i32", "i16"])
@pytest.mark.parametrize("lanes", [1, 4])
def test_places_of_a_constant(dtype: str, lanes: int) -> None:
    assert unproved({0: Range(0, EXTENT - 1)}, dtype=dtype, lanes=lanes) == 0
    assert unproved({0: Range(0, EXTENT)}, dtype=dtype, lanes=lanes) == lanes
    assert unproved({0: Range(-1, EXTENT - 1)}, dtype=dtype, lanes=lanes) == lanes
    assert unproved({}, dtype=dtype, lanes=lanes) == 2 * lanes
    assert unproved({1: Range(0, EXTENT - 1)}, dtype=dtype, lanes=lanes) == 2 * lanes


@pytest.mark.parametrize(("last", "count"), [(EXTENT - 1, 0), (EXTENT, 4)])
def test_places_that_are_gathered_themselves(last: int, count: int) -> None:
    k = KernelBuilder("kernel", machine("avx2"))
    table, x = k.binding(0, "i64", 32), k.binding(1, "f32", EXTENT)
    k.gather(x, k.gather(table, k.lane_indices(0, 8, 4)))
    assert len(check_bounds(k.finish(), contents={0: Range(0, last)})) == count


def test_lanes_that_are_not_read_are_zero() -> None:
    inside = {0: Range(4, EXTENT + 3)}
    assert unproved(inside, lanes=4, shift=-4) == 0
    assert unproved(inside, lanes=4, shift=-4, active=3) == 4
    assert unproved({0: Range(-EXTENT, -1)}, lanes=4, shift=EXTENT, active=3) == 4
    assert unproved({0: Range(1 - EXTENT, -1)}, lanes=4, shift=EXTENT - 1, active=3) == 0
    assert unproved({0: Range(1, EXTENT)}, lanes=4, shift=-1, active=3) == 4
    assert unproved({0: Range(1, EXTENT - 1)}, lanes=4, active=3) == 0


def test_what_the_kernel_writes_is_no_constant() -> None:
    assert unproved({0: Range(0, EXTENT - 1)}, writes=True) == 2


def test_tables_inside_the_code() -> None:
    def problems(*places: int) -> int:
        k = KernelBuilder("kernel", machine("avx2"))
        table, x = k.table("places", places), k.binding(1, "f32", EXTENT)
        k.load(x, k.load(table, k.begin))
        return len(check_bounds(k.finish(), workgroups=3))

    assert problems(0, 9, 3) == 0
    assert problems(0, 10, 3) == 1
    assert problems(-1, 9, 3) == 1


def test_ranges_of_bytes() -> None:
    def bytes_of(values: Any, dtype: str) -> Any:
        return np.array(values, dtype).view(np.uint8)

    assert range_of_bytes(bytes_of([3, -7, 2**40], "i8"), "i64") == (-7, 2**40)
    assert range_of_bytes(bytes_of([3, -7, 2**30], "i4"), "i32") == (-7, 2**30)
    assert range_of_bytes(bytes_of([3.0], "f4"), "f32") is None
    assert range_of_bytes(bytes_of([7], "i8"), "i64") == (7, 7)
    assert range_of_bytes(bytes_of([], "i8"), "i64") is None
    assert range_of_bytes(np.zeros(5, np.uint8), "i32") == (0, 0)


def test_lanes_that_a_shuffle_picks() -> None:
    def problems(mask: tuple[int, ...], low: int = 0) -> int:
        k = KernelBuilder("kernel", machine("avx2"))
        a, b = (k.load(k.binding(i, "i64", 32), 0, 4) for i in range(2))
        k.gather(k.binding(2, "f32", EXTENT), k.shuffle(a, b, mask))
        return len(check_bounds(k.finish(), contents={0: Range(0, EXTENT - 1), 1: Range(low, EXTENT)}))

    assert problems((0, 3, 2, 2)) == 0
    assert problems((0, 4, 2, 7)) == 2
    assert problems((0, 4, 2, 7), low=-1) == 4


def test_lanes_that_a_shuffle_picks_of_one_value_are_not_one_number() -> None:
    """Both come from one load, and may differ by as much as the table holds."""
    k = KernelBuilder("kernel", machine("avx2"))
    x = k.load(k.binding(0, "i64", 32), 0, 4)
    k.gather(k.binding(1, "f32", EXTENT), k.sub(x, k.shuffle(x, None, (3, 2, 1, 0))))
    assert len(check_bounds(k.finish(), contents={0: Range(2, 3)})) == 4


@pytest.mark.parametrize(("most", "fits"), [(2**31 - 2, True), (2**31 - 1, False)])
def test_places_that_are_moved_in_the_bits_they_are_stored_in(most: int, fits: bool) -> None:
    """`place + 1` in 32 bits, never negative unless it wraps."""
    k = KernelBuilder("kernel", machine("avx2"))
    place = k.add(k.load(k.binding(0, "i32", 32), 0), k.const(1, "i32"))
    k.load(k.binding(1, "f32", 2**40), k.cast(place, "i64"))
    assert (check_bounds(k.finish(), contents={0: Range(0, most)}) == []) is fits


def test_a_condition_does_not_tell_what_a_number_is_elsewhere() -> None:
    """Below 300 the third of a place fits into a byte; what was found there does not hold behind the branch."""
    k = KernelBuilder("kernel", machine("avx2"))
    x, place = k.binding(1, "f32", 200), k.load(k.binding(0, "i64", 32), 0)
    third = k.div(place, 3)

    def read() -> tuple[()]:
        k.load(x, k.cast(k.cast(third, "i8"), "i64"))
        return ()

    k.when(k.compare("lt", place, 300), read, lambda: ())
    k.load(x, k.add(k.cast(k.cast(third, "i8"), "i64"), 100))
    assert len(check_bounds(k.finish(), contents={0: Range(0, 599)})) == 4
