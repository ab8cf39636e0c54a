"""Numbers in which merged kernels differ, as multiples of a few sizes."""

from __future__ import annotations

from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.merging.numbers import Column, Numbers, terms_of
from tests.draws import RNG

ROWS = (64, 96)


def asked(columns: list[Column], sizes: tuple[list[Column], int] = ([], 0)) -> Numbers:
    numbers = Numbers(KernelBuilder("k", machine("avx2")), 0, *sizes)
    for column in columns:
        numbers.sum(column)
    return numbers


def times(count: int, column: Column = ROWS) -> Column:
    return tuple(count * one for one in column)


def test_rows_are_multiples_of_a_stride():
    columns = [times(count) for count in (3, 1, 2, 5, 4)]
    assert asked(columns).fewest() == ([ROWS], 1)


def test_a_stride_goes_before_a_smaller_number_of_which_it_is_a_multiple():
    panels = (2, 3)
    columns = [panels, *(times(count) for count in range(1, 6))]
    sizes, strides = asked(columns).fewest()
    assert (sizes, strides) == ([ROWS, panels], 1)
    assert terms_of(times(2), sizes, strides) == ((0, 2),)


def test_rows_beside_a_number_are_strides_from_it():
    start = (1000, 700)
    beside = [tuple(a + b for a, b in zip(start, times(count), strict=True)) for count in range(1, 5)]
    sizes, strides = asked([start, *(times(count) for count in range(1, 6)), *beside]).fewest()
    assert (sizes, strides) == ([ROWS, start], 1)
    assert [terms_of(column, sizes, strides) for column in beside] == [((1, 1), (0, n)) for n in range(1, 5)]


def test_what_is_summed_is_the_column():
    columns = [tuple(int(n) for n in RNG.integers(-3000, 3000, 3)) for _ in range(12)]
    columns += [tuple(int(n) * 7 for n in columns[0]), tuple(n + 5 for n in columns[1])]
    numbers = asked(columns, asked(columns).fewest())
    for column in columns:
        terms = terms_of(column, numbers.sizes, numbers.strides)
        if len(set(column)) > 1:
            assert terms is not None
            rest = {one - sum(n * numbers.sizes[i][k] for i, n in terms) for k, one in enumerate(column)}
            assert len(rest) == 1
