"""Bounds of index values: numbers that an affine form does not exceed, for given sizes and a given grid.

To bound a form from above, its most deeply defined term is replaced by that term's own upper (or lower) bound, again an
affine form, until only numbers are left; so `i + active` with `active = hi - i` becomes `hi` before anything is
estimated. Conditions of enclosing branches help where the form alone is not enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fuseline.targets.cpu.kernel_ir.affine import Affine, Fact, factors, order
from fuseline.targets.cpu.kernel_ir.conditions import Conditions
from fuseline.targets.cpu.kernel_ir.contents import Range, range_of_load
from fuseline.targets.cpu.kernel_ir.quotients import (
    bounds_of_division,
    bounds_of_product,
    bounds_of_shift,
    known_rest,
    whole_shares,
)
from fuseline.targets.cpu.kernel_ir.types import BITS, Function, Kernel, Loop, Value

_DEPTH_LIMIT = 24
_FACTS_TRIED = 2
_SIDES_TRIED = 2

_FOLDS: dict[str, Callable[[int, int], int]] = {"udiv": int.__floordiv__, "urem": int.__mod__, "min": min, "max": max}


class IndexBounds:
    """What is known about the index values of `kernel`, under the conditions in force.

    Args:
        sizes: the runtime sizes, by position.
        workgroups: of the grid, any range of which may run.
        contents: by binding position, the least and the greatest element of a constant.
    """

    def __init__(
        self, kernel: Kernel | Function, sizes: Sequence[int], workgroups: int, contents: Mapping[int, Range]
    ) -> None:
        self.kernel, self.workgroups, self.contents = kernel, workgroups, contents
        self.numbers = {size: int(sizes[i]) for i, size in enumerate(kernel.sizes)}
        self.forms: dict[tuple[Value, int], Affine] = {}
        self.lane = 0
        self.conditions = Conditions()

    # conditions -------------------------------------------------------------------------------------------------------

    def facts_of(self, condition: Value, holds: bool) -> Iterator[Fact]:
        """What a condition says about index values, where it holds and where not."""
        if condition.op == "and" and holds:
            for operand in condition.args:
                yield from self.facts_of(operand, True)
        elif condition.op == "compare" and all(
            not isinstance(a, Value) or a.type.dtype == "i64" for a in condition.args
        ):
            a, b = (self.form(arg) for arg in condition.args)
            yield from self._unsigned(holds, a, b) if condition.attr == "ult" else order(condition.attr, holds, a, b)

    def _unsigned(self, holds: bool, a: Affine, b: Affine) -> Iterator[Fact]:
        """What `a < b` as unsigned numbers says: something only where the greater one is known not to be negative."""
        if holds and self.not_negative(b):
            yield Affine(), a
            yield a.plus(Affine(1)), b
        elif not holds and self.not_negative(a):
            yield b, a

    def not_negative(self, form: Affine) -> bool:
        """Whether `0 <= form`."""
        return self.at_most(form.times(-1), 0)

    # forms ------------------------------------------------------------------------------------------------------------

    def form(self, operand: Any) -> Affine:
        """An index value as an affine form; of a vector, the form of lane `self.lane`."""
        if not isinstance(operand, Value):
            return Affine(int(operand))
        if operand in self.numbers:
            return Affine(self.numbers[operand])
        key = (operand, self.lane)
        found = self.forms.get(key)
        if found is None:
            found = self.forms[key] = self._form_everywhere(operand)
        return found

    def _form_everywhere(self, value: Value) -> Affine:
        """The form of a value, whatever branch asks for it: by no condition. What may not fit its type, and so wrap, is
        a term of its own."""
        with self.conditions.unconditionally():
            form = self._form(value)
            return form if value.type.dtype == "i64" or self._fits(form, value.type.dtype) else _atom(value)

    def _fits(self, form: Affine, dtype: str) -> bool:
        limit = 2 ** (BITS[dtype] - 1)
        return self.at_most(form, limit - 1) and self.at_most(form.times(-1), limit)

    def _form(self, value: Value) -> Affine:
        if value.op == "const":
            return Affine(int(value.attr[self.lane] if isinstance(value.attr, tuple) else value.attr))
        if value.op == "index" and self._runs_once(value.attr):
            return self.form(value.attr.lo)
        if value.op == "splat" or (value.op == "cast" and value.attr in ("sext", "trunc")):
            return self.form(value.args[0])
        if value.op == "cast" and value.attr == "zext" and self.not_negative(self.form(value.args[0])):
            return self.form(value.args[0])
        computed = self._computed(value) if value.op in ("add", "sub", "mul", *_FOLDS) else None
        return _atom(value) if computed is None else computed

    def _computed(self, value: Value) -> Affine | None:
        """Arithmetic that stays affine: sums, multiples, and what is computed of numbers."""
        a, b = (self.form(arg) for arg in value.args)
        if value.op in ("add", "sub"):
            return a.plus(b, 1 if value.op == "add" else -1)
        if value.op == "mul":
            a, b = (a, b) if not b.terms else (b, a)
            return None if b.terms else a.times(b.constant)
        if not a.terms and not b.terms and ((a.constant >= 0 and b.constant > 0) or value.op in ("min", "max")):
            return Affine(_FOLDS[value.op](a.constant, b.constant))
        if value.op in ("udiv", "urem") and not b.terms and b.constant == 1:
            return a if value.op == "udiv" else Affine()
        rest = known_rest(self, a, b.constant) if value.op == "urem" and not b.terms else None
        return None if rest is None else Affine(rest)

    def _runs_once(self, loop: Loop) -> bool:
        """Whether there is no second iteration. What an index is where there is none at all is nobody's question."""
        span = self.form(loop.hi).plus(self.form(loop.lo), -1)
        return not span.terms and span.constant <= loop.step

    # bounds -----------------------------------------------------------------------------------------------------------

    def most(self, form: Affine) -> int | None:
        """A number that `form` does not exceed, whatever the conditions in force; None if none is found."""
        with self.conditions.unconditionally():
            return self.upper(form)

    def least(self, form: Affine) -> int | None:
        """A number that `form` is not below, whatever the conditions in force; None if none is found."""
        found = self.most(form.times(-1))
        return None if found is None else -found

    def simpler(self, form: Affine) -> Iterator[Affine]:
        """Forms that `form` does not exceed: its most deeply defined term replaced by its bounds."""
        if form.terms:
            yield from (found[0] for found in self._replaced(form, _deepest(form)) if len(found) == 1)

    def upper(self, form: Affine, depth: int = 0) -> int | None:
        """A number that `form` does not exceed; None if none is found. It is looked for once: both sides of a minimum
        may share their terms, and those theirs."""
        if not form.terms:
            return form.constant
        if depth > _DEPTH_LIMIT:
            return None
        return self.conditions.found(form, self.lane, depth, lambda: self._upper(form, depth))

    def _upper(self, form: Affine, depth: int) -> int | None:
        atom = _deepest(form)
        found: list[int] = []
        for replaced in self._replaced(form, atom):
            bounds = [self.upper(one, depth + 1) for one in replaced]
            if all(b is not None for b in bounds):
                found.append(max(b for b in bounds if b is not None))
        return min(found, default=None)

    def _replaced(self, form: Affine, atom: Value) -> Iterator[list[Affine]]:
        """Ways to bound one term: each is a list of forms, the largest of which is not exceeded."""
        coefficient, rest = form.terms[atom], form.without(atom)
        for bounds in self._bounds(atom, coefficient > 0):
            yield [rest.plus(bound, coefficient) for bound in bounds]
        if atom.op == "udiv":
            yield from ([rest.plus(share)] for share in whole_shares(self, atom, coefficient))

    def _bounds(self, atom: Value, above: bool) -> Iterator[list[Affine]]:
        """Upper (or lower) bounds of an atom; a list means the extreme of its members."""
        if atom.op == "index":
            yield [self._loop_end(atom.attr, above)]
        elif atom.op in ("argument", "parameter"):
            yield from self._given(atom, above)
        elif atom.op in ("min", "max"):
            yield from self._extreme(atom, above)
        elif atom.op == "select":
            yield [self.form(arg) for arg in atom.args[1:]]
        elif atom.op in ("udiv", "urem"):
            yield from bounds_of_division(self, atom, above)
        elif atom.op == "mul":
            yield from bounds_of_product(self, atom, above)
        elif atom.op == "lshr":
            yield from bounds_of_shift(self, atom, above)
        elif atom.op == "srem":
            yield from self._signed_rest(atom, above)
        elif atom.op == "and" and not self.form(atom.args[1]).terms and self.form(atom.args[1]).constant >= 0:
            yield [self.form(atom.args[1]) if above else Affine(0)]
        else:
            yield from self._data(atom, above)

    def _data(self, atom: Value, above: bool) -> Iterator[list[Affine]]:
        """What is loaded, and what its type says of it."""
        if atom.op == "cast" and atom.attr == "zext":
            yield [Affine(2 ** BITS[atom.args[0].type.dtype] - 1 if above else 0)]
        elif atom.op in ("load", "gather"):
            found = range_of_load(atom, self.contents)
            if found is not None:
                yield [Affine(found.high if above else found.low)]
        elif atom.op == "shuffle":
            found = self._picked(atom, above)
            if found is not None:
                yield [Affine(found)]

    def _picked(self, shuffle: Value, above: bool) -> int | None:
        """What bounds the lane that a shuffle takes, as a number: lanes of one value are not told apart in forms."""
        place, first = shuffle.attr[self.lane], shuffle.args[0]
        count = first.type.lanes
        lane, self.lane = self.lane, place % count
        form = self.form(first if place < count else shuffle.args[1])
        found = self.most(form) if above else self.least(form)
        self.lane = lane
        return found

    def _extreme(self, atom: Value, above: bool) -> Iterator[list[Affine]]:
        sides = [self.form(arg) for arg in atom.args]
        if (atom.op == "min") == above:  # either side bounds it
            yield from ([side] for side in sides)
        else:
            yield sides

    def _given(self, atom: Value, above: bool) -> Iterator[list[Affine]]:
        """A kernel's range of workgroups, or what a function is given, of which nobody knows how large it is."""
        if not above:
            yield [Affine(0)]
        elif atom.op == "argument":
            yield [Affine(self.workgroups if atom.attr == "end" else self.workgroups - 1)]

    def _loop_end(self, loop: Loop, above: bool) -> Affine:
        lo, hi = self.form(loop.lo), self.form(loop.hi)
        if not above:
            return lo
        span = hi.plus(lo, -1)
        if any(number % loop.step for number in span.terms.values()):
            return hi.plus(Affine(-1))
        last = (span.constant - 1) // loop.step * loop.step  # beside whole steps
        return hi.plus(Affine(last - span.constant))

    def _signed_rest(self, atom: Value, above: bool) -> Iterator[list[Affine]]:
        """A rest is nearer to 0 than what divides, on either side."""
        divisor = self.form(atom.args[1])
        ends = self.upper(divisor), self.upper(divisor.times(-1))
        if ends[0] is not None and ends[1] is not None:
            most = max(abs(ends[0]), abs(ends[1])) - 1
            yield [Affine(most if above else -most)]

    def upper_before(self, atom: Value, form: Affine) -> int | None:
        """`upper` of what `atom` is made of, or what one of the conditions in force gives; one on later values might
        lead back to the atom."""
        found = [self.upper(form)]
        for smaller, larger in self.conditions.facts:
            if all(value.number < atom.number for side in (smaller, larger) for value in side.terms):
                found += [self.upper(form.plus(smaller, -f).plus(larger, f)) for f in factors(form, smaller, larger)]
        return min((bound for bound in found if bound is not None), default=None)

    def at_most(self, form: Affine, limit: int) -> bool:
        """Whether `form <= limit`, with the help of the conditions in force."""
        return self._at_most(form, limit, _FACTS_TRIED) or self._sides_at_most(form, limit, _SIDES_TRIED)

    def _sides_at_most(self, form: Affine, limit: int, tries: int) -> bool:
        """Whether a condition tells it of both sides of a minimum, maximum or choice, or of the one that matters."""
        atom = _deepest(form) if form.terms and self.conditions.facts else None
        if atom is None or atom.op not in ("min", "max", "select"):
            return False

        def holds(side: Affine) -> bool:
            return self._at_most(side, limit, _FACTS_TRIED) or (
                tries > 1 and self._sides_at_most(side, limit, tries - 1)
            )

        return any(all(holds(side) for side in sides) for sides in self._replaced(form, atom))

    def _at_most(self, form: Affine, limit: int, tries: int) -> bool:
        bound = self.upper(form)
        if bound is not None and bound <= limit:
            return True
        if tries == 0:
            return False
        for smaller, larger in self.conditions.facts:
            for factor in factors(form, smaller, larger):
                if self._at_most(form.plus(smaller, -factor).plus(larger, factor), limit, tries - 1):
                    return True
        return False


def _atom(value: Value) -> Affine:
    """A value as a term of its own."""
    return Affine(0, {value: 1})


def _deepest(form: Affine) -> Value:
    """The term that is defined most deeply, of those the last."""
    return max(form.terms, key=lambda value: (value.depth, value.number))
