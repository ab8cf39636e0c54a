"""Which results of a kernel may lie in the place of an operand: what is proved holds of runs where they do, by any
thread first; what is refused says why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.in_place import in_place
from fuseline.targets.cpu.kernel_ir.types import Kernel
from tests.kernel_ir.evaluate import evaluate

from .index_algebra import AVX2

ELEMENTS = 4 * 6 * 8
Body = Callable[[KernelBuilder, Any, Any, Any], None]
"""`body(kernel, x, y, workgroup)`: one of 4 workgroups."""


def _kernel(body: Body, workgroups: int = 4, dtypes: tuple[str, str] = ("f32", "f32")) -> Kernel:
    k = KernelBuilder("kernel", AVX2)
    x, y = k.binding(0, dtypes[0], ELEMENTS), k.binding(1, dtypes[1], ELEMENTS, writable=True)
    k.loop(k.begin, k.end, 1, lambda n: body(k, x, y, n))
    return k.finish()


def _refusal(kernel: Kernel, workgroups: int | None = 4, sizes: Mapping[int, int] | None = None) -> str:
    (found,) = in_place(kernel, [(1, 0)], workgroups, sizes).values()
    return "" if found is None else found.code


def _negated(k: KernelBuilder, x: Any, y: Any, read: Any, written: Any, lanes: int = 8, active: Any = None) -> None:
    k.store(y, written, k.neg(k.load(x, read, lanes, active=active)), active=active)


def _rows(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    k.loop(0, 6, 1, lambda i: _negated(k, x, y, *[k.add(k.mul(n, 48), k.mul(i, 8))] * 2))


def _columns(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """A workgroup takes two columns of every row."""
    k.loop(0, 24, 1, lambda i: _negated(k, x, y, *[k.add(k.mul(i, 8), k.mul(n, 2))] * 2, lanes=2))


def _delinearized(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """Rows 6 at a time by number, as a product of a window reads them: `8 * (6 * (r / 6) + r mod 6)`."""

    def row(i: Any) -> None:
        r = k.add(k.mul(n, 6), i)
        place = k.add(k.mul(k.div(r, 3), 24), k.mul(k.rem(r, 3), 8))
        _negated(k, x, y, place, k.mul(r, 8))

    k.loop(0, 6, 1, row)


def _grid(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """Workgroups are two halves of rows by two halves of columns."""
    row, column = k.div(n, 2), k.rem(n, 2)
    place = k.add(k.mul(row, 96), k.mul(column, 4))
    k.loop(0, 12, 1, lambda i: _negated(k, x, y, *[k.add(place, k.mul(i, 8))] * 2, lanes=4))


def _clamped_range(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """A loop over tiles whose range is the workgroup's, cut at the end."""
    lo = k.mul(n, 6)
    k.loop(lo, k.min(k.add(lo, 6), 23), 1, lambda i: _negated(k, x, y, *[k.mul(i, 8)] * 2))


def _tail(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """Rows of 48 by vectors of 7, the last one cut."""

    def vector(i: Any) -> None:
        place = k.mul(i, 7)
        _negated(k, x, y, *[k.add(k.mul(n, 48), place)] * 2, lanes=7, active=k.min(k.sub(48, place), 7))

    k.loop(0, 7, 1, vector)


def _row_first(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """A row is summed before any of it is written: a norm."""
    row = k.mul(n, 48)
    (total,) = k.loop(
        0, 6, 1, lambda i, t: (k.add(t, k.load(x, k.add(row, k.mul(i, 8)), 8)),), [k.const(0.0, "f32", 8)]
    )

    def vector(i: Any) -> None:
        place = k.add(row, k.mul(i, 8))
        k.store(y, place, k.sub(k.load(x, place, 8), total))

    k.loop(0, 6, 1, vector)


def _blocks_of_groups(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """Half the vectors of a row, then the other half: two loops side by side."""
    for first in (0, 24):
        k.loop(0, 3, 1, lambda i, first=first: _negated(k, x, y, *[k.add(k.mul(n, 48), k.add(k.mul(i, 8), first))] * 2))


def _written_out_rows(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """A workgroup takes 8 columns of 4 rows, one row after the other in its code."""
    for row in range(4):
        _negated(k, x, y, *[k.add(k.mul(n, 8), 48 * row)] * 2)


def _rows_for_a_loop(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """The rows are read one after the other in its code, and written by a loop."""
    columns = k.mul(n, 8)
    first, second, third, last = (k.load(x, k.add(columns, 48 * row), 8) for row in range(4))
    total = k.add(k.add(first, second), k.add(third, last))
    k.loop(0, 4, 1, lambda i: k.store(y, k.add(columns, k.mul(i, 48)), total))


def _whole_grid(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """All coordinates of a grid of 2 by 2 are kept, the outermost as a rest, too."""
    row, column = k.rem(k.div(n, 2), 2), k.rem(n, 2)
    _negated(k, x, y, *[k.add(k.mul(row, 96), k.mul(column, 48))] * 2)


def _outer_coordinate_of_one(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """A grid of 1 by 4: the outer coordinate is always 0."""
    row = k.sub(k.mul(n, 48), k.mul(k.div(n, 4), 48))
    k.loop(0, 6, 1, lambda i: _negated(k, x, y, *[k.add(row, k.mul(i, 8))] * 2))


def _rest_of_a_loop(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    k.loop(0, 6, 1, lambda i: _negated(k, x, y, *[k.add(k.mul(n, 48), k.mul(k.rem(i, 6), 8))] * 2))


def _no_rest_left(k: KernelBuilder, x: Any, y: Any, n: Any, first: int = 4) -> None:
    """Whole tiles, then those that are cut, of which there are none, whatever they would read."""
    _rows(k, x, y, n)
    k.loop(k.max(n, first), 4, 1, lambda _: _negated(k, x, y, k.mul(k.sub(3, n), 48), k.mul(n, 48)))


def _check_runs(kernel: Kernel, orders: Sequence[Sequence[int]], numbers: Sequence[int] = ()) -> None:
    """The workgroups of a kernel in these orders: the same with the result in the operand's place."""
    operand = np.random.default_rng().standard_normal(ELEMENTS).astype(np.float32)
    for order in orders:
        shared, apart = operand.copy(), [operand.copy(), operand.copy()]
        for workgroup in order:
            evaluate(kernel, [shared, shared], numbers, workgroup, workgroup + 1)
            evaluate(kernel, apart, numbers, workgroup, workgroup + 1)
        np.testing.assert_array_equal(shared, apart[1])


def _clamped_tile(k: KernelBuilder, x: Any, y: Any, n: Any, beyond: int = 0) -> None:
    """All rows of a tile are read, those beyond its last one for nothing; as many are written as there are."""
    last = k.sub(5, k.div(n, 2))
    rows = [k.load(x, k.add(k.mul(n, 48), k.mul(k.min(k.add(last, beyond), row), 8)), 8) for row in range(7)]
    k.loop(0, k.add(last, 1), 1, lambda i: k.store(y, k.add(k.mul(n, 48), k.mul(i, 8)), rows[0]))
    k.store(y, k.mul(n, 48), k.add(rows[5], rows[6]))


@pytest.mark.parametrize(
    "body",
    [
        _clamped_tile,
        _rows,
        _columns,
        _delinearized,
        _grid,
        _clamped_range,
        _tail,
        _row_first,
        _blocks_of_groups,
        _written_out_rows,
        _rows_for_a_loop,
        _whole_grid,
        _outer_coordinate_of_one,
        _rest_of_a_loop,
        _no_rest_left,
    ],
)
def test_what_is_read_before_it_is_written(body: Body) -> None:
    kernel = _kernel(body)
    assert _refusal(kernel) == ""
    _check_runs(kernel, [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])


def test_groups_of_a_block() -> None:
    """Threads that begin within a block's workgroups: the block is known by all of them, a workgroup by one."""

    def shared_blocks(k: KernelBuilder, x: Any, y: Any) -> None:
        def block(b: Any) -> None:
            first = k.mul(b, 2)
            lo, hi = k.max(k.sub(k.begin, first), 0), k.min(k.sub(k.end, first), 2)
            k.loop(lo, hi, 1, lambda g: _negated(k, x, y, *[k.add(k.mul(b, 8), k.mul(g, 4))] * 2, lanes=4))

        k.loop(k.div(k.begin, 2), k.ceil_div(k.end, 2), 1, block)

    k = KernelBuilder("kernel", AVX2)
    shared_blocks(k, k.binding(0, "f32", 16), k.binding(1, "f32", 16, writable=True))
    assert _refusal(k.finish()) == ""


def _halo(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    k.loop(
        0,
        5,
        1,
        lambda i: _negated(k, x, y, k.add(k.mul(n, 48), k.add(k.mul(i, 8), 1)), k.add(k.mul(n, 48), k.mul(i, 8))),
    )


def _transposed(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    k.loop(0, 4, 1, lambda i: _negated(k, x, y, k.add(k.mul(n, 4), i), k.add(k.mul(i, 4), n), lanes=1))


def _repeated(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    k.loop(0, 6, 1, lambda i: _negated(k, x, y, k.mul(n, 48), k.add(k.mul(n, 48), k.mul(i, 8))))


def _again(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """Each element is written once for each of two passes."""
    k.loop(0, 2, 1, lambda _: _negated(k, x, y, *[k.mul(n, 8)] * 2))


def _overlapping_tiles(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """The last tile is moved back to end with the row."""
    k.loop(0, 4, 1, lambda i: _negated(k, x, y, *[k.add(k.mul(n, 28), k.min(k.mul(i, 8), 20))] * 2))


def _written_first(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    k.store(y, k.mul(n, 8), k.const(1.0, "f32", 8))
    k.store(y, k.add(k.mul(n, 8), 96), k.load(x, k.mul(n, 8), 8))


def _next_row_written(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """Each of 4 rows in the code goes to the row below it, which is read after that."""
    for row in range(4):
        read, written = (k.add(k.mul(n, 8), 48 * at) for at in (row, (row + 1) % 4))
        _negated(k, x, y, read, written)


def _overlapping_copies(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """Vectors of 8 in the code, 4 apart."""
    for vector in range(4):
        _negated(k, x, y, *[k.add(k.mul(n, 48), 4 * vector)] * 2)


def _copies_of_other_workgroups(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """What the code takes as its second vector is the next workgroup's first."""
    for vector in range(4):
        _negated(k, x, y, *[k.add(k.mul(n, 8), 8 * vector)] * 2)


def _shared_rest(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """Two workgroups have the same rest."""
    _negated(k, x, y, *[k.mul(k.rem(n, 2), 8)] * 2)


def _shared_quotient(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    _negated(k, x, y, *[k.mul(k.div(n, 3), 8)] * 2)


def _rest_of_what_may_be_negative(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """-1 is a large number there, whose rest another one has."""
    k.loop(0, 6, 1, lambda i: _negated(k, x, y, *[k.add(k.mul(n, 48), k.mul(k.rem(k.sub(i, 1), 7), 4))] * 2, lanes=4))


def _gathered(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    place = k.mul(n, 8)
    k.store(y, place, k.gather(x, k.lane_indices(place, 1, 8)))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (partial(_clamped_tile, beyond=1), "unlike-places"),
        (_halo, "unlike-places"),
        (_transposed, "unlike-places"),
        (_repeated, "unlike-places"),
        (_again, "unlike-places"),
        (_overlapping_tiles, "unlike-places"),
        (_written_first, "read-later"),
        (_next_row_written, "read-later"),
        (_overlapping_copies, "read-later"),
        (_copies_of_other_workgroups, "unlike-places"),
        (_shared_rest, "unlike-places"),
        (_shared_quotient, "unlike-places"),
        (_rest_of_what_may_be_negative, "unlike-places"),
        (partial(_no_rest_left, first=3), "unlike-places"),
        (_gathered, "gathered"),
    ],
)
def test_what_must_lie_apart(body: Body, code: str) -> None:
    assert _refusal(_kernel(body)) == code


def test_elements_of_another_width() -> None:
    def narrowed(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
        k.store(y, k.mul(n, 8), k.cast(k.load(x, k.mul(n, 8), 8), "f16"))

    assert _refusal(_kernel(narrowed, dtypes=("f32", "f16"))) == "element-width"


def test_reads_outside_of_workgroups_are_everybodys() -> None:
    k = KernelBuilder("kernel", AVX2)
    x, y = k.binding(0, "f32", 32), k.binding(1, "f32", 32, writable=True)
    first = k.load(x, 0, 8)
    k.loop(k.begin, k.end, 1, lambda n: k.store(y, k.mul(n, 8), first))
    assert _refusal(k.finish()) == "unlike-places"


def test_one_workgroup_needs_no_place_of_its_own() -> None:
    def all_of_it(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
        del n
        k.loop(0, 24, 1, lambda i: _negated(k, x, y, *[k.mul(i, 8)] * 2))

    assert _refusal(_kernel(all_of_it), workgroups=1) == ""
    assert _refusal(_kernel(all_of_it), workgroups=4) == "unlike-places"
    assert _refusal(_kernel(all_of_it), workgroups=None) == "unlike-places"


def test_a_rest_of_a_grid_that_nobody_bounds() -> None:
    kernel = _kernel(_whole_grid)
    assert _refusal(kernel, workgroups=4) == ""
    assert _refusal(kernel, workgroups=5) == _refusal(kernel, workgroups=None) == "unlike-places"


def _strided(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
    """Rows and vectors as far apart as the last two sizes say, as many of them as the first."""
    rows, apart, beside = k.size(0, upper_bound=6), k.size(1), k.size(2)

    def vector(i: Any) -> None:
        written = k.add(k.mul(n, 48), k.mul(i, apart))
        _negated(k, x, y, k.add(written, beside), written)

    k.loop(0, rows, 1, vector)


@pytest.mark.parametrize(
    ("numbers", "code"),
    [((8, 0), ""), ((5, 0), "unlike-places"), ((8, 8), "unlike-places"), ((8, 1), "unlike-places")],
)
def test_numbers_of_a_launch(numbers: tuple[int, int], code: str) -> None:
    """The same code may write in place for the numbers of some launches and not for those of others."""
    kernel = _kernel(_strided)
    assert _refusal(kernel) != ""
    assert _refusal(kernel, sizes=dict(enumerate(numbers, start=1))) == code
    if not code:
        for rows in (1, 3, 6):
            _check_runs(kernel, [[0, 1, 2, 3], [3, 1, 2, 0]], (rows, *numbers))


def test_each_pair_for_itself() -> None:
    k = KernelBuilder("kernel", AVX2)
    x, moved = k.binding(0, "f32", 32), k.binding(1, "f32", 32)
    y = k.binding(2, "f32", 32, writable=True)

    def body(n: Any) -> None:
        place = k.mul(n, 8)
        k.store(y, place, k.add(k.load(x, place, 8), k.load(moved, k.sub(24, place), 8)))

    k.loop(k.begin, k.end, 1, body)
    found = in_place(k.finish(), [(2, 0), (2, 1)], 4)
    assert {pair: refusal and refusal.code for pair, refusal in found.items()} == {
        (2, 0): None,
        (2, 1): "unlike-places",
    }


def _walk(strides: Sequence[Sequence[int]], offset: int, written_out: bool) -> Body:
    """Three loops, read and written along these strides; the inner two `written_out` or not."""

    def body(k: KernelBuilder, x: Any, y: Any, n: Any) -> None:
        def point(i: Any, j: Any) -> None:
            read, written = (k.add(k.mul(n, a), k.add(k.mul(i, b), k.mul(j, c))) for a, b, c in strides)
            k.store(y, written, k.neg(k.load(x, k.add(read, offset))))

        if written_out:
            for i, j in product(range(4), range(3)):
                point(i, j)
        else:
            k.loop(0, 4, 1, lambda i: k.loop(0, 3, 1, lambda j: point(i, j)))

    return body


@pytest.mark.parametrize("written_out", [False, True])
def test_random_places(written_out: bool) -> None:
    """Whatever is proved of walks over three loops holds of them in any order of workgroups."""
    rng = np.random.default_rng()
    for _ in range(60):
        read, written = ([int(n) for n in rng.permutation([1, 4, 12, 48])[:3]] for _ in range(2))
        kernel = _kernel(_walk([read, written if rng.integers(2) else read], int(rng.integers(2)), written_out))
        if not _refusal(kernel):
            _check_runs(kernel, [[int(n) for n in rng.permutation(4)]])
