"""When two places of a kernel can be one: what is said of random places holds of all iterations, and what is plain to
see is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

from fuseline.targets.cpu.kernel_ir.accesses import accesses
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.iterations import IterationBounds
from fuseline.targets.cpu.kernel_ir.overlap import NEVER, OFTEN, ONCE, Overlap, Touched
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand
from tests.draws import generator

from .index_algebra import AVX2

WORKGROUPS, INNER = 3, 4
Terms = tuple[int, int, int]
"""`(factor of the workgroup, factor of the inner loop, constant)`."""


def _places(read: Terms, written: Terms, lanes: int) -> tuple[Overlap, Touched, Touched]:
    """A read and a write in a loop inside of that over workgroups."""
    k = KernelBuilder("kernel", AVX2)
    x, y = k.binding(0, "f32", 4096), k.binding(1, "f32", 4096, writable=True)

    def place(terms: Terms, n: Any, i: Any) -> Any:
        return k.add(k.add(k.mul(n, terms[0]), k.mul(i, terms[1])), terms[2])

    def body(n: Any) -> None:
        k.loop(0, INNER, 1, lambda i: k.store(y, place(written, n, i), k.load(x, place(read, n, i), lanes)))

    k.loop(k.begin, k.end, 1, body)
    kernel = k.finish()
    overlap = Overlap(IterationBounds(kernel, WORKGROUPS), accesses(kernel))
    one, other = overlap.touched
    return overlap, one, other


def _touched(terms: Terms, lanes: int) -> Iterator[tuple[tuple[int, int], set[int]]]:
    for n, i in product(range(WORKGROUPS), range(INNER)):
        first = terms[0] * n + terms[1] * i + terms[2]
        yield (n, i), set(range(first, first + lanes))


def _truth(read: Terms, written: Terms, lanes: int) -> tuple[str, bool]:
    """By enumeration: when the two can meet, and whether they are apart within every iteration."""
    met = [
        (a, b) for (a, these), (b, those) in product(_touched(read, lanes), _touched(written, lanes)) if these & those
    ]
    meeting = NEVER if not met else ONCE if all(a == b for a, b in met) else OFTEN
    return meeting, not any(a == b for a, b in met)


ORDER = (NEVER, ONCE, OFTEN)


@pytest.mark.parametrize("draw", range(60))
def test_what_is_said_holds_of_all_iterations(draw: int) -> None:
    rng = generator(f"overlap {draw}")
    lanes = int(rng.choice([1, 1, 4, 8]))
    inner, outer = int(rng.choice([1, 2, 4, 8, 9])), int(rng.choice([1, 4, 16, 32, 33]))
    read = (outer, inner, int(rng.integers(0, 5)))
    written = read if rng.random() < 0.4 else (outer, inner, int(rng.integers(0, 40)))
    if rng.random() < 0.3:
        written = (int(rng.integers(0, 40)), int(rng.integers(0, 9)), int(rng.integers(0, 5)))
    overlap, one, other = _places(read, written, lanes)
    meeting, apart = _truth(read, written, lanes)
    for said in (overlap.of_these_two(one, other), overlap.of_all_alike(one, other)):
        assert ORDER.index(said) >= ORDER.index(meeting), (read, written, lanes)
    assert apart or not overlap.apart(one, other)


@pytest.mark.parametrize(
    ("read", "written", "lanes", "said"),
    [
        ((32, 8, 0), (32, 8, 0), 8, ONCE),
        ((32, 8, 0), (32, 8, 0), 9, OFTEN),  # vectors overlap the next ones
        ((32, 8, 0), (32, 8, 128), 8, NEVER),  # behind all that is read
        ((32, 8, 0), (32, 8, 8), 8, OFTEN),  # the neighbour's
        ((64, 8, 0), (64, 8, 32), 8, NEVER),  # the other half of a row
        ((0, 8, 0), (0, 8, 0), 8, OFTEN),  # all workgroups the same
        ((8, 32, 0), (8, 32, 0), 8, ONCE),  # by columns
        ((32, 8, 0), (8, 24, 0), 8, OFTEN),  # transposed
        ((16, 1, 0), (32, 1, 8), 1, NEVER),  # halves of rows, the rows of one twice as far apart
        ((16, 1, 0), (32, 1, 3), 1, OFTEN),  # the same, less than a half apart
    ],
)
def test_what_is_plain_is_said(read: Terms, written: Terms, lanes: int, said: str) -> None:
    overlap, one, other = _places(read, written, lanes)
    assert overlap.of_these_two(one, other) == said
    assert ORDER.index(_truth(read, written, lanes)[0]) <= ORDER.index(said)


def test_apart_within_an_iteration() -> None:
    overlap, one, other = _places((32, 8, 0), (32, 8, 8), 8)
    assert overlap.apart(one, other) and overlap.apart(other, one)
    overlap, one, other = _places((32, 8, 0), (32, 8, 7), 8)
    assert not overlap.apart(one, other)


def test_a_loop_that_nobody_counts_may_meet_often() -> None:
    """The same place again, read and written in an inner loop whose index is not in it."""
    overlap, one, other = _places((32, 0, 0), (32, 0, 0), 8)
    assert overlap.of_these_two(one, other) == OFTEN


def test_a_number_cut_in_two_and_put_together_is_the_number() -> None:
    """`8 * (r / 3 * 3 + r mod 3)` is `8 * r`."""
    k = KernelBuilder("kernel", AVX2)
    x, y = k.binding(0, "f32", 4096), k.binding(1, "f32", 4096, writable=True)

    def body(n: Any) -> None:
        cut = k.add(k.mul(k.div(n, 3), 24), k.mul(k.rem(n, 3), 8))
        k.store(y, k.mul(n, 8), k.load(x, cut, 8))

    k.loop(k.begin, k.end, 1, body)
    kernel = k.finish()
    overlap = Overlap(IterationBounds(kernel, 12), accesses(kernel))
    one, other = overlap.touched
    assert one.extent.first.terms == other.extent.first.terms and one.form == other.form
    assert overlap.of_these_two(one, other) == ONCE


def test_a_grid_of_constants_is_taken_as_digits() -> None:
    """Two rows by two vectors written out; columns 32 on are another workgroup's."""
    k = KernelBuilder("kernel", AVX2)
    x, y = k.binding(0, "f32", 4096), k.binding(1, "f32", 4096, writable=True)

    def body(n: Any) -> None:
        for row, vector in product(range(2), range(2)):
            place = k.add(k.mul(n, 16), row * 64 + vector * 8)
            k.store(y, place, k.load(x, place, 8))

    k.loop(k.begin, k.end, 1, body)
    kernel = k.finish()
    overlap = Overlap(IterationBounds(kernel, 4), accesses(kernel))
    reads = [place for place in overlap.touched if not place.access.written]
    writes = [place for place in overlap.touched if place.access.written]
    assert len({place.form for place in overlap.touched}) == 1 and len(reads) == len(writes) == 4
    for read, write in product(reads, writes):
        assert overlap.of_all_alike(read, write) != NEVER
        assert overlap.of_these_two(read, write) == (ONCE if read.at == write.at else NEVER)


Body = Callable[[KernelBuilder, MemRef, MemRef], None]


def _said(body: Body, workgroups: int = 4) -> str:
    """Of the one read and the one write of a kernel."""
    k = KernelBuilder("kernel", AVX2)
    body(k, k.binding(0, "f32", 4096), k.binding(1, "f32", 4096, writable=True))
    kernel = k.finish()
    overlap = Overlap(IterationBounds(kernel, workgroups), accesses(kernel))
    one, other = overlap.touched
    assert overlap.of_these_two(one, other) == overlap.of_all_alike(one, other)
    return overlap.of_these_two(one, other)


def _copied(k: KernelBuilder, x: MemRef, y: MemRef, place: Operand, lanes: int = 8) -> None:
    k.store(y, place, k.load(x, place, lanes))


@pytest.mark.parametrize(("lanes", "said"), [(4, ONCE), (5, OFTEN)])
def test_a_quotient_and_its_rest_tell_workgroups_apart(lanes: int, said: str) -> None:
    """Workgroups are halves of 12 rows of 8 by halves of columns."""

    def body(k: KernelBuilder, x: MemRef, y: MemRef) -> None:
        def rows(n: Operand) -> None:
            corner = k.add(k.mul(k.div(n, 2), 96), k.mul(k.rem(n, 2), 4))
            k.loop(0, 12, 1, lambda i: _copied(k, x, y, k.add(corner, k.mul(i, 8)), lanes))

        k.loop(k.begin, k.end, 1, rows)

    assert _said(body) == said


def test_a_rest_that_is_divided_again_tells_them_apart() -> None:
    """Of 8 workgroups: which half, which quarter of it, which of these two."""

    def body(k: KernelBuilder, x: MemRef, y: MemRef) -> None:
        def mine(n: Operand) -> None:
            half = k.rem(n, 4)
            quarter = k.add(k.mul(k.div(half, 2), 96), k.mul(k.rem(half, 2), 8))
            _copied(k, x, y, k.add(k.mul(k.div(n, 4), 256), quarter))

        k.loop(k.begin, k.end, 1, mine)

    assert _said(body, workgroups=8) == ONCE


def test_a_quotient_alone_does_not() -> None:
    """Both halves of the columns are those of the first."""

    def body(k: KernelBuilder, x: MemRef, y: MemRef) -> None:
        k.loop(k.begin, k.end, 1, lambda n: _copied(k, x, y, k.mul(k.div(n, 2), 8)))

    assert _said(body) == OFTEN


@pytest.mark.parametrize(("rows", "said"), [(6, ONCE), (7, OFTEN)])
def test_ranges_side_by_side_tell_workgroups_apart(rows: int, said: str) -> None:
    """Workgroups take 6 rows each, or one that is the next one's, up to the last row."""

    def body(k: KernelBuilder, x: MemRef, y: MemRef) -> None:
        def mine(n: Operand) -> None:
            first = k.mul(n, 6)
            k.loop(first, k.min(k.add(first, rows), 23), 1, lambda i: _copied(k, x, y, k.mul(i, 8)))

        k.loop(k.begin, k.end, 1, mine)

    assert _said(body) == said


def test_the_same_step_of_ranges_side_by_side_is_not_the_same_index() -> None:
    """Every workgroup has the 2 places that it counts from its own first row."""

    def body(k: KernelBuilder, x: MemRef, y: MemRef) -> None:
        def mine(n: Operand) -> None:
            first = k.mul(n, 2)
            k.loop(first, k.add(first, 2), 1, lambda i: _copied(k, x, y, k.mul(k.sub(i, first), 8)))

        k.loop(k.begin, k.end, 1, mine)

    assert _said(body) == OFTEN


@pytest.mark.parametrize(("steps", "said"), [(1, ONCE), (2, OFTEN)])
def test_a_loop_of_one_step_repeats_nothing(steps: int, said: str) -> None:
    def body(k: KernelBuilder, x: MemRef, y: MemRef) -> None:
        k.loop(k.begin, k.end, 1, lambda n: k.loop(0, steps, 1, lambda _: _copied(k, x, y, k.mul(n, 8))))

    assert _said(body) == said


@pytest.mark.parametrize(("before", "said"), [(2, ONCE), (1, OFTEN)])
def test_the_range_of_a_thread_cut_to_an_arm_is_its_own(before: int, said: str) -> None:
    """An arm of 3 workgroups behind 2 others; or one whose last workgroup two threads may have."""

    def body(k: KernelBuilder, x: MemRef, y: MemRef) -> None:
        first, end = k.max(k.sub(k.begin, 2), 0), k.min(k.sub(k.end, before), 3)
        k.loop(first, end, 1, lambda n: _copied(k, x, y, k.mul(n, 8)))

    assert _said(body, workgroups=5) == said


def test_what_no_thread_has_of_its_own_meets_often() -> None:
    """Every thread runs the same 3 iterations."""

    def body(k: KernelBuilder, x: MemRef, y: MemRef) -> None:
        k.loop(0, 3, 1, lambda n: _copied(k, x, y, k.mul(n, 8)))

    assert _said(body) == OFTEN
