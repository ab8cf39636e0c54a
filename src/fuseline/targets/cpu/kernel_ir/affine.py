"""Affine forms over the values of a kernel that are not affine themselves, and what conditions say about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from fuseline.targets.cpu.kernel_ir.types import Value


class Affine:
    """`constant + sum(coefficient * atom)`; atoms are values."""

    __slots__ = ("constant", "terms")

    def __init__(self, constant: int = 0, terms: dict[Value, int] | None = None) -> None:
        self.constant, self.terms = constant, terms or {}

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        """`self + factor * other`."""
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            total = terms.get(atom, 0) + factor * coefficient
            if total:
                terms[atom] = total
            else:
                terms.pop(atom, None)
        return Affine(self.constant + factor * other.constant, terms)

    def times(self, factor: int) -> Affine:
        """`factor * self`."""
        return Affine().plus(self, factor)

    def without(self, atom: Value) -> Affine:
        """The form with one term dropped."""
        return Affine(self.constant, {a: c for a, c in self.terms.items() if a is not atom})


Fact: TypeAlias = tuple[Affine, Affine]
"""`first <= second` holds."""


def factors(form: Affine, smaller: Affine, larger: Affine) -> set[int]:
    """How often `larger - smaller` may be added to `form` so that a term of it goes."""
    difference = larger.plus(smaller, -1)
    found = (divmod(-form.terms.get(atom, 0), c) for atom, c in difference.terms.items())
    return {times for times, rest in found if times > 0 and rest == 0}


_NEGATED = {"slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt", "ne": "eq"}


def order(predicate: str, holds: bool, a: Affine, b: Affine) -> Iterator[Fact]:
    """A signed comparison as `<=` facts."""
    if not holds and predicate not in _NEGATED:
        return
    one = Affine(1)
    facts = {
        "slt": [(a.plus(one), b)],
        "sle": [(a, b)],
        "sgt": [(b.plus(one), a)],
        "sge": [(b, a)],
        "eq": [(a, b), (b, a)],
    }
    yield from facts.get(predicate if holds else _NEGATED[predicate], [])


def text(form: Affine) -> str:
    """The form for people."""
    terms = [f"{c}*{atom.op}{atom.number}" for atom, c in form.terms.items()]
    return " + ".join([*terms, str(form.constant)])
