"""Static bounds: every access of a kernel proved to stay inside its buffer, for given sizes and a given grid.

An index is an affine form over the values that are not affine themselves (loop indices, quotients, minima, what is loaded). To bound a form
from above, its most deeply defined term is replaced by that term's own upper (or lower) bound, again an affine form, until only numbers are
left; so `i + active` with `active = hi - i` becomes `hi` before anything is estimated. Conditions of enclosing branches help where the form
alone is not enough. What cannot be proved is a `Problem`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fuseline.targets.cpu.kernel_ir.types import BITS, Address, Block, Kernel, Loop, MemRef, Operand, Value, When

_DEPTH_LIMIT = 24
_FACTS_TRIED = 2


@dataclass(frozen=True)
class Problem:
    """An access that may leave its buffer: the operation, the buffer, and what could not be shown."""

    operation: str
    buffer: str
    detail: str


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

    def without(self, atom: Value) -> Affine:
        """The form with one term dropped."""
        return Affine(self.constant, {a: c for a, c in self.terms.items() if a is not atom})


_FOLDS: dict[str, Callable[[int, int], int]] = {"udiv": int.__floordiv__, "urem": int.__mod__, "min": min, "max": max}

Fact: TypeAlias = tuple[Affine, Affine]
"""`first <= second` holds."""


def check_bounds(kernel: Kernel, sizes: Sequence[int] = (), workgroups: int = 1) -> list[Problem]:
    """The accesses of `kernel` that cannot be shown to stay inside, for runtime `sizes` and any range of a grid of `workgroups`."""
    checker = _Checker(kernel, sizes, workgroups)
    checker.block(kernel.body)
    return checker.problems


class _Checker:
    def __init__(self, kernel: Kernel, sizes: Sequence[int], workgroups: int) -> None:
        self.kernel, self.workgroups = kernel, workgroups
        self.numbers = {size: int(sizes[i]) for i, size in enumerate(kernel.sizes)}
        self.forms: dict[tuple[Value, int], Affine] = {}
        self.lane = 0
        self.facts: list[Fact] = []
        self.problems: list[Problem] = []

    # walking -------------------------------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, Loop):
                if not self.at_most(self.form(op.hi).plus(self.form(op.lo), -1), 0):  # else it never runs
                    self.block(op.body)
            elif isinstance(op, When):
                self._when(op)
            elif op.op in ("load", "store", "gather", "scatter"):
                self._access(op)

    def _when(self, when: When) -> None:
        for block, holds in ((when.then, True), (when.otherwise, False)):
            added = list(self._facts_of(when.condition, holds))
            self.facts += added
            self.block(block)
            del self.facts[len(self.facts) - len(added) :]

    def _facts_of(self, condition: Value, holds: bool) -> Iterator[Fact]:
        """What a condition says about index values."""
        if condition.op == "and" and holds:
            for part in condition.args:
                yield from self._facts_of(part, True)
        elif condition.op == "compare" and all(not isinstance(a, Value) or a.type.dtype == "i64" for a in condition.args):
            a, b = (self.form(arg) for arg in condition.args)
            yield from self._unsigned(holds, a, b) if condition.attr == "ult" else _order(condition.attr, holds, a, b)

    def _unsigned(self, holds: bool, a: Affine, b: Affine) -> Iterator[Fact]:
        """What `a < b` as unsigned numbers says: something only where the greater one is known not to be negative."""
        if holds and self._not_negative(b):
            yield Affine(), a
            yield a.plus(Affine(1)), b
        elif not holds and self._not_negative(a):
            yield b, a

    def _not_negative(self, form: Affine) -> bool:
        return self.at_most(Affine().plus(form, -1), 0)

    # forms ---------------------------------------------------------------------------------------------------------------------------

    def form(self, operand: Any) -> Affine:
        """An index value as an affine form; of a vector, the form of lane `self.lane`."""
        if not isinstance(operand, Value):
            return Affine(int(operand))
        if operand in self.numbers:
            return Affine(self.numbers[operand])
        key = (operand, self.lane if operand.type.lanes > 1 else 0)
        found = self.forms.get(key)
        if found is None:
            found = self.forms[key] = self._form(operand)
        return found

    def _form(self, value: Value) -> Affine:
        if value.op == "const":
            return Affine(int(value.attr[self.lane] if isinstance(value.attr, tuple) else value.attr))
        if value.op == "splat" or (value.op == "cast" and self._keeps_number(value)):
            return self.form(value.args[0])
        if value.op in ("add", "sub"):
            a, b = (self.form(arg) for arg in value.args)
            return a.plus(b, 1 if value.op == "add" else -1)
        if value.op == "mul":
            a, b = (self.form(arg) for arg in value.args)
            a, b = (a, b) if not b.terms else (b, a)
            if not b.terms:
                return Affine().plus(a, b.constant) if b.constant else Affine()
        fold = _FOLDS.get(value.op)
        if fold is not None:
            a, b = (self.form(arg) for arg in value.args)
            if not a.terms and not b.terms and (b.constant > 0 or value.op in ("min", "max")):
                return Affine(fold(a.constant, b.constant))
        return Affine(0, {value: 1})

    def _keeps_number(self, cast: Value) -> bool:
        """Whether a conversion changes no number that it may meet; no condition helps, since forms hold everywhere."""
        if cast.attr not in ("zext", "trunc"):
            return cast.attr == "sext"
        number = self.form(cast.args[0])
        most, least = self.upper(number), self.upper(Affine().plus(number, -1))
        if cast.attr == "zext":
            return least is not None and least <= 0
        limit = 2 ** (BITS[cast.type.dtype] - 1)
        return most is not None and most < limit and least is not None and least <= limit

    # bounds --------------------------------------------------------------------------------------------------------------------------

    def upper(self, form: Affine, depth: int = 0) -> int | None:
        """A number that `form` does not exceed; None if none is found."""
        if not form.terms:
            return form.constant
        if depth > _DEPTH_LIMIT:
            return None
        atom = max(form.terms, key=lambda value: (value.depth, value.number))
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
        if atom.op == "udiv" and coefficient > 0:  # c * floor(x / d) <= (c / d) * x
            divisor = self.form(atom.args[1])
            if not divisor.terms and divisor.constant > 0 and coefficient % divisor.constant == 0:
                yield [rest.plus(self.form(atom.args[0]), coefficient // divisor.constant)]

    def _bounds(self, atom: Value, above: bool) -> Iterator[list[Affine]]:
        """Upper (or lower) bounds of an atom; a list means the extreme of its members."""
        if atom.op == "index":
            yield [self._loop_end(atom.attr, above)]
        elif atom.op == "argument":
            yield [Affine(self.workgroups if above and atom.attr == "end" else (self.workgroups - 1 if above else 0))]
        elif atom.op in ("min", "max"):
            yield from self._extreme(atom, above)
        elif atom.op == "select":
            yield [self.form(arg) for arg in atom.args[1:]]
        elif atom.op in ("udiv", "urem"):
            yield from self._division(atom, above)
        elif atom.op == "srem":
            yield from self._signed_rest(atom, above)
        elif atom.op == "and" and not self.form(atom.args[1]).terms and self.form(atom.args[1]).constant >= 0:
            yield [self.form(atom.args[1]) if above else Affine(0)]
        elif atom.op == "cast" and atom.attr == "zext":
            yield [Affine(2 ** BITS[atom.args[0].type.dtype] - 1 if above else 0)]

    def _extreme(self, atom: Value, above: bool) -> Iterator[list[Affine]]:
        sides = [self.form(arg) for arg in atom.args]
        if (atom.op == "min") == above:  # either side bounds it
            yield from ([side] for side in sides)
        else:
            yield sides

    def _loop_end(self, loop: Loop, above: bool) -> Affine:
        lo, hi = self.form(loop.lo), self.form(loop.hi)
        if not above:
            return lo
        span = hi.plus(lo, -1)
        whole = all(number % loop.step == 0 for number in (span.constant, *span.terms.values()))
        return hi.plus(Affine(loop.step if whole else 1), -1)

    def _division(self, atom: Value, above: bool) -> Iterator[list[Affine]]:
        """Nothing negative is divided, by the builder's contract; what data or a program brings there is a large number instead."""
        if not above:
            yield [Affine(0)]
            return
        divisor, operand = self.form(atom.args[1]), self.form(atom.args[0])
        if divisor.terms or divisor.constant <= 0:
            return
        least = self._upper_here(Affine().plus(operand, -1))
        whole = self._upper_here(operand) if least is not None and least <= 0 else None
        if atom.op == "urem":
            yield [Affine(divisor.constant - 1 if whole is None else min(divisor.constant - 1, max(whole, 0)))]
        elif whole is not None:
            yield [Affine(whole // divisor.constant)]

    def _signed_rest(self, atom: Value, above: bool) -> Iterator[list[Affine]]:
        """A rest is nearer to 0 than what divides, on either side."""
        divisor = self.form(atom.args[1])
        ends = self.upper(divisor), self.upper(Affine().plus(divisor, -1))
        if ends[0] is not None and ends[1] is not None:
            most = max(abs(ends[0]), abs(ends[1])) - 1
            yield [Affine(most if above else -most)]

    def _upper_here(self, form: Affine) -> int | None:
        """`upper`, or what one of the conditions in force gives."""
        found = [self.upper(form)]
        for smaller, larger in self.facts:
            found += [self.upper(form.plus(smaller, -f).plus(larger, f)) for f in _factors(form, smaller, larger)]
        return min((bound for bound in found if bound is not None), default=None)

    def at_most(self, form: Affine, limit: int) -> bool:
        """Whether `form <= limit`, with the help of the conditions in force."""
        return self._at_most(form, limit, _FACTS_TRIED)

    def _at_most(self, form: Affine, limit: int, tries: int) -> bool:
        bound = self.upper(form)
        if bound is not None and bound <= limit:
            return True
        if tries == 0:
            return False
        for smaller, larger in self.facts:
            for factor in _factors(form, smaller, larger):
                if self._at_most(form.plus(smaller, -factor).plus(larger, factor), limit, tries - 1):
                    return True
        return False

    # accesses ------------------------------------------------------------------------------------------------------------------------

    def _access(self, op: Value) -> None:
        address, active = op.args[0], op.args[1]
        if op.op in ("load", "store"):
            lanes = (op.type if op.op == "load" else op.args[3].type).lanes
            count: Operand = lanes if active is None else active
            self._range(op, address, Affine(), self.form(count).plus(Affine(1), -1))
        else:
            for lane in range(op.args[3].type.lanes):
                self._lane(op, address, active, lane)

    def _lane(self, op: Value, address: Address, active: Operand | None, lane: int) -> None:
        """One lane of a gather or scatter, which is live only if `active` exceeds it."""
        if isinstance(active, int) and lane >= active:
            return
        self.lane = lane
        live = [(Affine(lane + 1), self.form(active))] if isinstance(active, Value) else []
        self.facts += live
        offsets = self.form(op.args[3])
        self._range(op, address, offsets, offsets)
        del self.facts[len(self.facts) - len(live) :]
        self.lane = 0

    def _range(self, op: Value, address: Address, first: Affine, last: Affine) -> None:
        place = self.form(address.index).plus(Affine(address.offset))
        first, last = place.plus(first), place.plus(last)
        if isinstance(address.root, MemRef):
            self._inside(op, address.root, first, last)
            return
        condition, a, b = address.root.args
        for side, holds in ((a, True), (b, False)):
            added = list(self._facts_of(condition, holds))
            self.facts += added
            self._range(op, side, first, last)
            del self.facts[len(self.facts) - len(added) :]

    def _inside(self, op: Value, memory: MemRef, first: Affine, last: Affine) -> None:
        extent = self.form(memory.extent)
        if not self.at_most(last.plus(extent, -1), -1):
            self.problems.append(Problem(op.op, memory.name, f"cannot show that element {_text(last)} lies before {_text(extent)}"))
        if not self._not_negative(first):
            self.problems.append(Problem(op.op, memory.name, f"cannot show that element {_text(first)} is not negative"))


def _factors(form: Affine, smaller: Affine, larger: Affine) -> set[int]:
    """How often `larger - smaller` may be added to `form` so that a term of it goes."""
    difference = larger.plus(smaller, -1)
    found = ((form.terms.get(atom, 0), c) for atom, c in difference.terms.items())
    return {-mine // c for mine, c in found if mine * c < 0 and mine % c == 0}


def _order(predicate: str, holds: bool, a: Affine, b: Affine) -> Iterator[Fact]:
    """A signed comparison as `<=` facts."""
    one = Affine(1)
    names = {"slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt"}
    if not holds:
        predicate = names.get(predicate, "")
    facts = {"slt": [(a.plus(one), b)], "sle": [(a, b)], "sgt": [(b.plus(one), a)], "sge": [(b, a)], "eq": [(a, b), (b, a)]}
    yield from facts.get(predicate, [])


def _text(form: Affine) -> str:
    terms = [f"{c}*{atom.op}{atom.number}" for atom, c in form.terms.items()]
    return " + ".join([*terms, str(form.constant)])
