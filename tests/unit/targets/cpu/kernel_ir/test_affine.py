"""Affine forms: their arithmetic against numbers, and what comparisons say."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest

from fuseline.targets.cpu.kernel_ir.affine import Affine, factors, order, text
from fuseline.targets.cpu.kernel_ir.types import I64, Value

ATOMS = [Value("size", I64, (), i, i, 0) for i in range(3)]


def _random() -> Affine:
    rng = np.random.default_rng()
    terms = {atom: int(c) for atom in ATOMS if (c := rng.integers(-3, 4))}
    return Affine(int(rng.integers(-9, 10)), terms)


def _at(form: Affine, point: list[int]) -> int:
    return form.constant + sum(count * point[atom.number] for atom, count in form.terms.items())


def test_sums_and_multiples_are_those_of_the_values() -> None:
    for _ in range(50):
        a, b = _random(), _random()
        point = np.random.default_rng().integers(-9, 10, 3).tolist()
        for factor in (-2, 0, 1, 3):
            assert _at(a.plus(b, factor), point) == _at(a, point) + factor * _at(b, point)
            assert _at(a.times(factor), point) == factor * _at(a, point)
        for atom in ATOMS:
            left = a.without(atom)
            assert (
                atom not in left.terms and _at(left, point) == _at(a, point) - a.terms.get(atom, 0) * point[atom.number]
            )
        assert all(a.plus(b).terms.values())  # terms that cancel are gone
        assert not a.plus(a, -1).terms and a.plus(a, -1).constant == 0


PREDICATES: dict[str, Callable[[int, int], bool]] = {
    "slt": operator.lt, "sle": operator.le, "sgt": operator.gt, "sge": operator.ge, "eq": operator.eq,
    "ne": operator.ne,
}  # fmt: skip


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("predicate", PREDICATES)
def test_the_facts_of_a_comparison_hold_exactly_where_it_does(predicate: str, holds: bool) -> None:
    a, b = Affine(0, {ATOMS[0]: 1}), Affine(0, {ATOMS[1]: 1})
    facts = list(order(predicate, holds, a, b))
    for x in range(-2, 3):
        for y in range(-2, 3):
            true = PREDICATES[predicate](x, y) == holds
            said = all(_at(one, [x, y, 0]) <= _at(two, [x, y, 0]) for one, two in facts)
            assert said or not true
            assert true or not said or not facts  # facts say all there is to say
    # of what is not equal, nothing is said that is a sum of comparisons
    assert bool(facts) == ((predicate, holds) not in {("ne", True), ("eq", False)})


@pytest.mark.parametrize("predicate", ["ult", "uge", "olt"])
@pytest.mark.parametrize("holds", [True, False])
def test_other_comparisons_say_nothing(predicate: str, holds: bool) -> None:
    assert not list(order(predicate, holds, Affine(1), Affine(2)))


def test_multiples_that_make_a_term_go() -> None:
    n, m, _ = ATOMS
    form = Affine(5, {n: 6, m: -4})
    # n <= m: m - n may be added; 6 n goes with 6 of them, -4 m with 4
    assert factors(form, Affine(0, {n: 1}), Affine(0, {m: 1})) == {6, 4}
    assert factors(form, Affine(0, {n: 4}), Affine(0, {m: 3})) == set()  # no whole number of them
    assert factors(form, Affine(0, {n: 3}), Affine()) == {2}
    assert factors(form, Affine(), Affine(0, {n: 3})) == set()
    assert factors(Affine(1), Affine(0, {n: 1}), Affine()) == set()


def test_text() -> None:
    assert text(Affine(-3)) == "-3" and text(Affine(2, {ATOMS[1]: -4})) == "-4*size1 + 2"
