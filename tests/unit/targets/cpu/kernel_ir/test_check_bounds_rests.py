"""What the bounds checker takes remainders and quotients of any number for: signed and unsigned, of loops that begin below 0 and of data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds

from .index_algebra import AVX2


def problems(place: Callable[[KernelBuilder, Any, Any], Any], extent: int) -> int:
    """How many accesses to `extent` elements at `place(loop from -3 to 4, an element)` are not proved."""
    k = KernelBuilder("kernel", AVX2)
    memory, data = k.binding(0, "f32", extent), k.binding(1, "i64", 1)

    def body(i: Any) -> None:
        k.load(memory, place(k, k.sub(i, 3), k.load(data, 0)))

    k.loop(0, 8, 1, body)
    return len(check_bounds(k.finish()))


PLACES: dict[str, tuple[Callable[[KernelBuilder, Any, Any], Any], int]] = {
    "signed rest of data": (lambda k, i, e: k.add(k.srem(e, 5), 4), 9),
    "signed rest by what is chosen": (lambda k, i, e: k.add(k.srem(e, k.select(k.compare("gt", i, 0), 2, 5)), 4), 9),
    "signed rest by a negative number": (lambda k, i, e: k.add(k.srem(e, -5), 4), 9),
    "unsigned rest of data": (lambda k, i, e: k.rem(e, 5), 5),
    "unsigned rest of what may be negative": (lambda k, i, e: k.rem(i, 9), 9),
    "unsigned rest of what is not negative": (lambda k, i, e: k.rem(k.add(i, 3), 9), 8),
    "quotient of what is not negative": (lambda k, i, e: k.div(k.add(i, 3), 2), 4),
}


@pytest.mark.parametrize("name", PLACES)
def test_it_is_no_greater(name: str):
    place, extent = PLACES[name]
    assert problems(place, extent) == 0
    assert problems(place, extent - 1) > 0


def test_what_may_be_negative_is_a_large_number_when_it_is_divided():
    assert problems(lambda k, i, e: k.div(i, 2), 1 << 40) == 1
