"""How index values are bounded: what is kept of their forms, and in how many steps."""

from __future__ import annotations

from typing import Any

import pytest

from fuseline.targets.cpu.kernel_ir.affine import Affine
from fuseline.targets.cpu.kernel_ir.functions import FunctionBuilder
from fuseline.targets.cpu.kernel_ir.index_bounds import IndexBounds
from fuseline.targets.cpu.kernel_ir.types import I32, I64, Type
from tests.draws import RNG

from .index_algebra import AVX2, Builder


@pytest.mark.parametrize(("type_", "kept"), [(I64, True), (I32, False)])
def test_a_sum_of_unknown_size_is_a_form_in_64_bits_only(type_: Type, kept: bool) -> None:
    """There it is taken not to wrap, as `nsw` says; in fewer bits it might, and is a term of its own."""
    f = FunctionBuilder("f", (type_,))
    n = f.parameters[0]
    more = f.add(n, n)
    known = IndexBounds(f.finish(), (), 1, {})
    assert known.form(more).terms == ({n: 2} if kept else {more: 1})


def _chain(levels: int) -> tuple[IndexBounds, Any]:
    """Minima of maxima in which each level reads the one before on both sides."""
    k = Builder("kernel", AVX2)
    ends: list[Any] = []

    def body(i: Any) -> None:
        value = i
        for level in range(levels):
            value = k.min(k.add(value, 1), k.max(value, level))
        ends.append(value)

    k.loop(0, 9, 1, body)
    return IndexBounds(k.finish(), (), 1, {}), ends[0]


@pytest.mark.parametrize("levels", [3, 11, 30])
def test_terms_that_both_sides_share_are_bounded_once(monkeypatch: pytest.MonkeyPatch, levels: int) -> None:
    """Each level adds forms, up to one for each number that is added on the way, and does not double them."""
    known, value = _chain(levels)
    steps, search = [0], IndexBounds._upper  # pyright: ignore[reportPrivateUsage]

    def counted(self: IndexBounds, form: Affine, depth: int) -> int | None:
        steps[0] += 1
        return search(self, form, depth)

    monkeypatch.setattr(IndexBounds, "_upper", counted)
    bound = known.upper(known.form(value))
    assert steps[0] <= 4 * levels * levels + 8
    if levels == 3:
        value = [8]
        for level in range(levels):
            value.append(min(value[-1] + 1, max(value[-1], level)))
        assert bound == value[-1]


def test_a_condition_tightens_what_was_found_without_it() -> None:
    k = Builder("kernel", AVX2)
    seen: list[Any] = []
    k.loop(0, 30, 1, seen.append)
    known = IndexBounds(k.finish(), (), 1, {})
    index = known.form(seen[0])
    assert known.upper(index) == 29 and not known.at_most(index, 7)
    with known.conditions.assuming([(index, Affine(7))]):
        assert known.at_most(index, 7) and known.most(index) == 29
        with known.conditions.unconditionally():
            assert not known.at_most(index, 7)
        assert known.at_most(index, 7)
    assert not known.at_most(index, 7)


def _forms(index: Any) -> tuple[IndexBounds, Any, list[Any]]:
    """`index(k, i)` of a loop index from -3 on, for the sizes 11, 1 and 3."""
    k, made = Builder("kernel", AVX2), list[Any]()
    sizes = [k.size(i) for i in range(3)]
    k.loop(-3, 9, 1, lambda i: made.extend([i, *index(k, sizes, i)]))
    first, *rest = made
    return IndexBounds(k.finish(), (11, 1, 3), 1, {}), first, rest


@pytest.mark.parametrize(
    ("index", "constant"),
    [
        (lambda k, n, i: k.min(n[0], n[2]), 3),
        (lambda k, n, i: k.max(n[0], n[2]), 11),
        (lambda k, n, i: k.min(k.sub(n[1], n[0]), n[2]), -10),
        (lambda k, n, i: k.max(k.sub(n[1], n[0]), n[2]), 3),
        (lambda k, n, i: k.div(n[0], n[2]), 3),
        (lambda k, n, i: k.rem(n[0], n[2]), 2),
        (lambda k, n, i: k.div(k.sub(n[1], n[1]), n[2]), 0),
        (lambda k, n, i: k.div(n[0], n[1]), 11),
        (lambda k, n, i: k.rem(i, n[1]), 0),
        (lambda k, n, i: k.mul(n[0], n[2]), 33),
    ],
)
def test_what_is_computed_of_numbers_is_a_number(index: Any, constant: int) -> None:
    known, _, (value,) = _forms(lambda k, n, i: [index(k, n, i)])
    form = known.form(value)
    assert (form.terms, form.constant) == ({}, constant)


def test_multiples_and_quotients_by_one_stay_affine() -> None:
    known, i, (right, left, whole) = _forms(lambda k, n, i: [k.mul(i, n[2]), k.mul(n[2], i), k.div(i, n[1])])
    assert [known.form(value).terms for value in (right, left, whole)] == [{i: 3}, {i: 3}, {i: 1}]


def test_a_quotient_of_what_may_be_negative_is_a_term_of_its_own() -> None:
    known, _, (value, other) = _forms(lambda k, n, i: [k.div(k.sub(n[1], n[0]), n[2]), k.div(i, n[2])])
    assert [known.form(one).terms for one in (value, other)] == [{value: 1}, {other: 1}]


@pytest.mark.parametrize(("end", "step", "once"), [(4, 1, True), (5, 1, False), (11, 8, True), (12, 8, False)])
def test_the_index_of_a_single_iteration_is_where_it_begins(end: int, step: int, once: bool) -> None:
    k, seen = Builder("kernel", AVX2), list[Any]()
    first = k.size(0)
    k.loop(first, k.add(first, end - 3), step, seen.append)
    known = IndexBounds(k.finish(), (3,), 1, {})
    assert known.form(seen[0]).terms == ({} if once else {seen[0]: 1})


@pytest.mark.parametrize("_", range(12))
def test_an_index_is_at_most_that_of_the_last_step(_: int) -> None:
    """Also where a loop begins at a size, and ends whole steps of another one further."""
    begin, count, step, more = (int(RNG.integers(*ends)) for ends in ((-9, 9), (1, 40), (1, 9), (0, 5)))
    k, made = Builder("kernel", AVX2), list[Any]()
    start, further = k.size(0), k.mul(k.size(1), step)
    k.loop(begin, begin + count, step, made.append)
    k.loop(start, k.add(k.add(start, further), count), step, made.append)
    known = IndexBounds(k.finish(), (7, more), 1, {})
    assert known.upper(known.form(made[0])) == range(begin, begin + count, step)[-1]
    assert known.upper(known.form(made[1])) == range(7, 7 + more * step + count, step)[-1]
