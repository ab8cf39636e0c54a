"""What bounds quotients, rests, products and shifts, against all values that they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import pytest

from fuseline.targets.cpu.kernel_ir.affine import Affine
from fuseline.targets.cpu.kernel_ir.quotients import (
    bounds_of_division,
    bounds_of_product,
    bounds_of_shift,
    whole_shares,
)
from fuseline.targets.cpu.kernel_ir.types import I64, Type, Value

Range = tuple[int, int]


class Known:
    """Values with ranges: what `IndexBounds` knows of them, without conditions."""

    def __init__(self, *ranges: Range) -> None:
        self.atoms = [Value("size", I64, (), i, i + 1, 0) for i in range(len(ranges))]
        self.ranges: dict[Value, Range] = dict(zip(self.atoms, ranges, strict=True))

    def form(self, operand: Any) -> Affine:
        return (
            operand
            if isinstance(operand, Affine)
            else Affine(operand)
            if isinstance(operand, int)
            else Affine(0, {operand: 1})
        )

    def most(self, form: Affine) -> int | None:
        if any(atom not in self.ranges for atom in form.terms):
            return None
        return form.constant + sum(max(c * end for end in self.ranges[atom]) for atom, c in form.terms.items())

    def least(self, form: Affine) -> int | None:
        found = self.most(form.times(-1))
        return None if found is None else -found

    def upper_before(self, atom: Value, form: Affine) -> int | None:
        del atom
        return self.most(form)

    def simpler(self, form: Affine) -> Iterator[Affine]:
        for atom, count in form.terms.items():
            if atom in self.ranges:
                yield form.without(atom).plus(Affine(max(count * end for end in self.ranges[atom])))

    def points(self) -> Iterator[dict[Value, int]]:
        for numbers in product(*(range(low, high + 1) for low, high in self.ranges.values())):
            yield dict(zip(self.atoms, numbers, strict=True))


def _at(form: Affine, point: dict[Value, int]) -> int:
    return form.constant + sum(count * point[atom] for atom, count in form.terms.items())


def _value(op: str, *args: Any, dtype: str = "i64") -> Value:
    return Value(op, Type(dtype), args, None, 99, 0)


def _checked(
    known: Known, found: Sequence[list[Affine]], function: Callable[[dict[Value, int]], int], *, above: bool
) -> list[int]:
    """All bounds hold at every point; how far the best of them is away from what is reached, over all points."""
    assert all(len(group) >= 1 for group in found)
    slack: list[int] = []
    for point in known.points():
        value = function(point)
        bounds = [min(_at(form, point) for form in group) for group in found]
        for bound in bounds:
            assert bound >= value if above else bound <= value
        slack += [abs(min(bounds) - value) if above else abs(max(bounds) - value)] if bounds else []
    return slack


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("op", ["udiv", "urem"])
@pytest.mark.parametrize(("dividend", "divisor"), [((0, 17), 5), ((3, 17), (2, 4)), ((0, 3), (5, 9)), ((10, 10), 10)])
def test_quotients_and_rests_of_known_numbers(op: str, dividend: Range, divisor: int | Range, above: bool) -> None:
    known = Known(dividend, *([divisor] if isinstance(divisor, tuple) else []))
    by: Any = known.atoms[1] if isinstance(divisor, tuple) else divisor
    atom = _value(op, known.atoms[0], by)
    function = int.__floordiv__ if op == "udiv" else int.__mod__
    found = list(bounds_of_division(known, atom, above))
    slack = _checked(
        known, found, lambda p: function(p[known.atoms[0]], p[by] if isinstance(by, Value) else by), above=above
    )
    assert found and (min(slack) == 0 or op == "urem")


@pytest.mark.parametrize(("dividend", "divisor"), [((-3, 5), 4), ((0, 9), (0, 3)), ((-3, 5), (-1, 2))])
def test_of_what_may_be_negative_or_nothing_little_is_said(dividend: Range, divisor: int | Range) -> None:
    known = Known(dividend, *([divisor] if isinstance(divisor, tuple) else []))
    by: Any = known.atoms[1] if isinstance(divisor, tuple) else divisor
    for op in ("udiv", "urem"):
        for above in (True, False):
            for group in bounds_of_division(known, _value(op, known.atoms[0], by), above):
                for point in known.points():
                    b = point[by] if isinstance(by, Value) else by
                    if b <= 0:
                        continue
                    a = point[known.atoms[0]] % 2**64
                    value = a // b if op == "udiv" else a % b
                    bound = min(_at(form, point) for form in group)
                    assert bound >= value if above else bound <= value


def test_a_rest_is_below_its_divisor_whatever_is_divided() -> None:
    known = Known((-3, 5), (2, 6))
    groups = list(bounds_of_division(known, _value("urem", known.atoms[0], known.atoms[1]), True))
    assert [(form.constant, form.terms) for (form,) in groups] == [(-1, {known.atoms[1]: 1})]


def test_multiples_of_a_divisor_are_divided_as_forms() -> None:
    """`(n * d - 1) / d` is at most `n - 1`, however large both may be."""
    known = Known((1, 6), (2, 5))
    n, d = known.atoms
    whole = _value("mul", n, d)
    known.ranges[whole] = (2, 30)
    found = list(bounds_of_division(known, _value("udiv", Affine(-1, {whole: 1}), d), True))
    assert any(form.constant == -1 and form.terms == {n: 1} for (form,) in found)
    del known.ranges[whole]
    for point in Known((1, 6), (2, 5)).points():
        count, divisor = point.values()
        assert (count * divisor - 1) // divisor <= count - 1


def test_quotients_of_quotients_are_one() -> None:
    known = Known((1, 6), (2, 5), (2, 3))
    n, d, e = known.atoms
    whole = _value("mul", _value("mul", n, d), e)
    inner = Value("udiv", I64, (Affine(-1, {whole: 1}), d), None, 98, 0)
    known.ranges |= {whole: (4, 90), inner: (0, 44)}
    found = list(bounds_of_division(known, _value("udiv", inner, e), True))
    assert any(form.constant == -1 and form.terms == {n: 1} for (form,) in found)


@pytest.mark.parametrize(("count", "number"), [(4, 4), (8, 4), (-4, 4), (-12, 3)])
def test_whole_shares(count: int, number: int) -> None:
    known = Known((0, 23))
    (x,) = known.atoms
    (form,) = whole_shares(known, _value("udiv", x, number), count)
    for point in known.points():
        assert count * (point[x] // number) <= _at(form, point)
    assert any(count * (point[x] // number) == _at(form, point) for point in known.points())


@pytest.mark.parametrize(
    ("dividend", "divisor", "count"), [((0, 9), 4, 6), ((-1, 9), 4, 4), ((0, 9), -4, 4), ((0, 9), 0, 4)]
)
def test_no_whole_shares(dividend: Range, divisor: int, count: int) -> None:
    known = Known(dividend)
    assert not list(whole_shares(known, _value("udiv", known.atoms[0], divisor), count))


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("ranges", [((0, 4), (2, 7)), ((3, 3), (5, 5))])
def test_products(ranges: tuple[Range, Range], above: bool) -> None:
    known = Known(*ranges)
    a, b = known.atoms
    slack = _checked(
        known, list(bounds_of_product(known, _value("mul", a, b), above)), lambda p: p[a] * p[b], above=above
    )
    assert min(slack) == 0


@pytest.mark.parametrize(
    ("ranges", "dtype"), [(((-1, 4), (2, 7)), "i64"), (((0, 4), (-2, 7)), "i64"), (((0, 15), (0, 9)), "i8")]
)
def test_products_that_may_be_negative_or_too_large(ranges: tuple[Range, Range], dtype: str) -> None:
    known = Known(*ranges)
    assert not list(bounds_of_product(known, _value("mul", *known.atoms, dtype=dtype), True))


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize(("low", "high", "places", "dtype"), [(0, 30, 2, "i64"), (9, 9, 1, "i32"), (-5, 5, 1, "i8")])
def test_shifts(low: int, high: int, places: int, dtype: str, above: bool) -> None:
    known = Known((low, high))
    bits = int(dtype[1:])
    found = list(bounds_of_shift(known, _value("lshr", known.atoms[0], places, dtype=dtype), above))
    slack = _checked(known, found, lambda p: (p[known.atoms[0]] % 2**bits) >> places, above=above)
    assert slack and (min(slack) == 0 or low < 0)


@pytest.mark.parametrize("places", [0, -1, "n"])
def test_shifts_by_nothing_or_by_what_is_not_known(places: int | str) -> None:
    known = Known((0, 9), (1, 3))
    by: Any = known.atoms[1] if places == "n" else places
    assert not list(bounds_of_shift(known, _value("lshr", known.atoms[0], by), True))
    negative = Known((-2, 9))
    assert not list(bounds_of_shift(negative, _value("lshr", negative.atoms[0], 4), True))  # 60 bits
