"""Linear forms against numbers: every form is evaluated at all points of its loops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseline.analysis.linear_forms import Floor, Linear, constant, delinearize, divided, flatten, floor_of, range_of
from fuseline.ir import dim as d


def at(form: Linear, point: Sequence[int]) -> int:
    """The value of a form of known sizes."""
    total = form.constant
    assert isinstance(total, int)
    for atom, coefficient in form.terms.items():
        assert isinstance(coefficient, int)
        if isinstance(atom, Floor):
            assert isinstance(atom.divisor, int)
            total += coefficient * (at(atom.numerator, point) // atom.divisor)
        else:
            assert isinstance(atom, int)
            total += coefficient * point[atom]
    return total


forms = st.builds(
    lambda a, b, c: Linear({i: v for i, v in enumerate((a, b)) if v}, c),
    st.integers(-3, 12),
    st.integers(-3, 12),
    st.integers(-5, 40),
)
extents = st.tuples(st.integers(1, 5), st.integers(1, 5))


@given(forms, st.integers(1, 8), extents)
def test_a_quotient_and_a_rest_are_what_division_gives(form: Linear, size: int, extents: tuple[int, int]):
    parts = divided(form, size, extents)
    assert parts is not None
    for point in product(*map(range, extents)):
        assert (at(parts[0], point), at(parts[1], point)) == divmod(at(form, point), size)


@given(forms, st.lists(st.integers(1, 6), min_size=1, max_size=4), extents)
def test_digits_joined_are_the_number_again(form: Linear, sizes: list[int], extents: tuple[int, int]):
    parts = delinearize(form, sizes, extents)
    if parts is None or all(size == 1 for size in sizes):  # a dimension of one element has no coordinate but 0
        return
    again = flatten(parts, sizes)
    assert all(at(again, point) == at(form, point) for point in product(*map(range, extents)))


def test_what_cancels_is_gone():
    form = Linear({0: 1, 1: 1}, -1)
    parts = delinearize(form, (7, 2), (14, 3))
    assert parts is not None
    assert not parts[0].plain
    assert flatten(parts, (7, 2)) == form


def test_loops_that_step_by_whole_multiples_need_no_quotient():
    parts = divided(Linear({0: 64, 1: 1}, 128), 64, (12, 64))
    assert parts == (Linear({0: 1}, 2), Linear({1: 1}, 0))


def test_a_quotient_is_not_divided_again():
    once = floor_of(Linear({0: 1}), 2)
    assert once is not None
    assert floor_of(once, 2) is None
    assert delinearize(once, (4, 2), (16,)) is None


def test_replacing_loops_reaches_into_quotients():
    form = floor_of(Linear({0: 1}), 2)
    assert form is not None
    moved = form.with_loops(lambda loop: Linear({loop: 1}, 3))
    assert moved is not None
    assert [at(moved, (i,)) for i in range(6)] == [(i + 3) // 2 for i in range(6)]
    assert form.with_loops(lambda loop: form) is None


def test_sizes_known_at_run_time():
    n = d.symbol("n", 1)
    form = Linear({0: n}, n)
    assert range_of(form, (4,)) is None
    parts = delinearize(form, (5, n), (4,))
    assert parts is not None
    assert flatten(parts, (5, n)) == form


@pytest.mark.parametrize(("form", "expected"), [(constant(3), (3, 3)), (Linear({0: 2, 1: -1}, 1), (-1, 7))])
def test_ranges(form: Linear, expected: tuple[int, int]):
    assert range_of(form, (4, 3)) == expected


def test_a_loop_of_a_size_known_at_run_time_is_a_digit():
    """`batch * n + row` divided by `n`, as a reshape of batches of rows leaves it."""
    n = d.symbol("n", 1)
    assert divided(Linear({0: n, 1: 1}), n, (4, n)) == (Linear({0: 1}), Linear({1: 1}))
    shifted = divided(Linear({0: n, 1: 1}, 1), n, (4, n))
    assert shifted is not None
    assert not shifted[0].plain


@given(forms, st.integers(0, 1), st.integers(0, 6), extents)
def test_a_loop_counted_from_elsewhere_is_the_form_there(form: Linear, loop: int, start: int, extents: tuple[int, int]):
    rounded = floor_of(form, 3)
    assert rounded is not None
    for whole in (form, form.plus(rounded, 2)):
        moved = whole.counted_from(loop, start)
        assert moved is not None
        for point in product(*map(range, extents)):
            there = [i + start if i_loop == loop else i for i_loop, i in enumerate(point)]
            assert at(moved, point) == at(whole, there)


@given(st.lists(st.tuples(forms, st.integers(0, 6)), min_size=0, max_size=4), extents)
def test_flattened_coordinates_are_the_row_major_index(parts: list[tuple[Linear, int]], extents: tuple[int, int]):
    flat = flatten([form for form, _ in parts], [size for _, size in parts])
    assert all(coefficient != 0 for coefficient in flat.terms.values())
    for point in product(*map(range, extents)):
        index = 0
        for form, size in parts:
            index = index * size + at(form, point)
        assert at(flat, point) == index


@given(forms, st.integers(-4, 4), extents)
def test_a_product_with_a_number(form: Linear, factor: int, extents: tuple[int, int]):
    for point in product(*map(range, extents)):
        assert at(form.times(factor), point) == factor * at(form, point)
    assert form.times(0) == Linear({})


def test_a_product_with_a_size():
    n = d.symbol("n")
    assert Linear({0: 3}, 5).times(n) == Linear({0: d.mul(n, 3)}, d.mul(n, 5))
