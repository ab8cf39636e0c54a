"""Whether two accesses of a kernel, taken to touch the same memory, can only meet within one iteration of all loops
around both, on one thread.

What is asked is which values must be equal where the two places are:

    1. a place is a number in digits (`iterations.py`); from the largest on, each digit that is larger than what follows
       can be must be equal; the same holds of the rest that a place leaves, divided by what large digits count
    2. a quotient and the rest that belongs to it being equal, so is what was divided, which is a number in digits again
    3. an index being equal, so is what its loop's range begins at, where that range is one of several side by side
    4. what is computed from equal values is equal
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, product
from math import gcd
from typing import NamedTuple

from fuseline.targets.cpu.kernel_ir.accesses import Access, Node, common_nodes
from fuseline.targets.cpu.kernel_ir.affine import Affine
from fuseline.targets.cpu.kernel_ir.extents import Extent, modulo, spans_of, terms_of, without
from fuseline.targets.cpu.kernel_ir.grids import Grid, grid_of
from fuseline.targets.cpu.kernel_ir.iterations import IterationBounds
from fuseline.targets.cpu.kernel_ir.types import Loop, Operand, Value, When

NEVER, ONCE, OFTEN = "never", "once", "often"

_ROUNDS = 16

PURE_INDEX = frozenset({"add", "sub", "mul", "udiv", "urem", "min", "max", "select", "compare", "cast"})


class Touched(NamedTuple):
    """What an access touches, in the branch of that number. Places of one `form` differ in nothing but the constant
    `at` and in where they stand."""

    access: Access
    extent: Extent
    form: int
    at: int
    branch: int


class Around(NamedTuple):
    """The loops around two places; whether all that repeats them counts its iterations."""

    loops: tuple[Loop, ...]
    counted: bool


class Overlap:
    """What `touched` accesses of one kernel have in common, as far as `known` tells."""

    def __init__(self, known: IterationBounds, touched: Iterable[Access]) -> None:
        self.known = known
        self._forms: dict[object, int] = {}
        self._branches: dict[tuple[Node, ...], int] = {}
        self._around: dict[tuple[int, int], Around] = {}
        self._meetings: dict[tuple[Around, tuple[int, ...]], str] = {}
        self._of_spans: dict[tuple[Around, tuple[int, int]], str] = {}
        self.touched = [self._place(access) for access in touched]
        self._wholes = self._of_forms()
        self._spans = spans_of(known, [whole for whole, _ in self._wholes])

    def _place(self, access: Access) -> Touched:
        first = self.normal(self.known.form(access.base).plus(Affine(access.offset)))
        end = first.plus(self.known.form(access.lanes if access.active is None else access.active))
        key = terms_of(first), terms_of(end), end.constant - first.constant
        form = self._forms.setdefault(key, len(self._forms))
        branch = self._branches.setdefault(access.nodes, len(self._branches))
        return Touched(access, Extent(first, end), form, first.constant, branch)

    def _of_forms(self) -> list[tuple[Extent, Grid]]:
        """For each form the places between the first and the last that it has, and what repeats the first."""
        by_form: dict[int, dict[int, Extent]] = {}
        for one in self.touched:
            by_form.setdefault(one.form, {})[one.at] = one.extent
        return [
            (Extent(by_at[min(by_at)].first, by_at[max(by_at)].end), grid_of(by_at) or {}) for by_at in by_form.values()
        ]

    def of_all_alike(self, one: Touched, other: Touched) -> str:
        """When the same element can be touched by any two places of their forms and branches: `never`, at most `once`,
        in the same iteration of all loops around both, by the same thread, or `often`. What spans around several forms
        do not, none does."""
        key = self._loops_around(one, other), (one.form, other.form)
        if self._spans.joins and (found := self._of_spans_around(*key)) != OFTEN:
            return found
        if key not in self._meetings:
            self._meetings[key] = self._of_all(*key)
        return self._meetings[key]

    def _of_spans_around(self, around: Around, forms: tuple[int, int]) -> str:
        one, other = (self._spans.number_of[form] for form in forms)
        key = around, (one, other)
        if key not in self._of_spans:
            self._of_spans[key] = self._meeting(around, self._spans.extents[one], self._spans.extents[other])
        return self._of_spans[key]

    def _of_all(self, around: Around, forms: tuple[int, int]) -> str:
        """The same of all places of two forms: of whatever lies between them first."""
        (one, grid), (other, its_grid) = (self._wholes[form] for form in forms)
        found = self._meeting(around, one, other)
        if found == OFTEN and (grid or its_grid):
            found = self._meeting(around, self._repeated(one, grid), self._repeated(other, its_grid))
        return found

    def _repeated(self, whole: Extent, grid: Grid) -> Extent:
        """What lies at the points of a grid, as digits of the place."""
        last = sum(stride * (count - 1) for stride, count in grid.items())
        digits = Affine(0, {self.known.copy(stride, count): stride for stride, count in grid.items()})
        return Extent(whole.first.plus(digits), whole.end.plus(digits).plus(Affine(-last)))

    def of_these_two(self, one: Touched, other: Touched) -> str:
        """The same, whatever other places of the two forms do."""
        key = self._loops_around(one, other), (one.form, other.form, one.at - other.at)
        if key not in self._meetings:
            self._meetings[key] = self._meeting(key[0], one.extent, other.extent)
        return self._meetings[key]

    def _loops_around(self, one: Touched, other: Touched) -> Around:
        branches = one.branch, other.branch
        if branches not in self._around:
            nodes = common_nodes(one.access, other.access)
            loops = tuple(node for node in nodes if isinstance(node, Loop))
            self._around[branches] = Around(loops, all(isinstance(node, Loop | When) for node in nodes))
        return self._around[branches]

    def _meeting(self, around: Around, one: Extent, other: Extent) -> str:
        equal = _Equal(self, around.loops)
        if not equal.meet(one, other):
            return NEVER
        of_one_thread = any(self._is_of_one_thread(loop, equal) for loop in around.loops)
        return ONCE if around.counted and of_one_thread and equal.all_iterations() else OFTEN

    def apart(self, one: Touched, other: Touched) -> bool:
        """Whether no element is touched by both within one iteration of the loops around both."""
        return self._before(one.extent, other.extent) or self._before(other.extent, one.extent)

    def _before(self, one: Extent, other: Extent) -> bool:
        most = self.known.most(one.end.plus(other.first, -1))
        return most is not None and most <= 0

    def normal(self, form: Affine) -> Affine:
        """`a * n * (x / n) + a * (x mod n)` as `a * x`, wherever it is found."""
        for rest, whole in self._divided(form):
            factor, divisor = form.terms[rest], self.known.form(rest.args[1]).constant
            if form.terms.get(whole) == factor * divisor:
                kept = form.without(rest).without(whole)
                return self.normal(kept.plus(self.known.form(rest.args[0]), factor))
        return form

    def _divided(self, form: Affine) -> Iterator[tuple[Value, Value]]:
        """The rests in a form with the quotients by the same number of the same value."""
        wholes = [atom for atom in form.terms if atom.op == "udiv"]
        for rest in [atom for atom in form.terms if atom.op == "urem"]:
            if not self.known.form(rest.args[1]).terms:
                yield from ((rest, whole) for whole in wholes if self.of_one_division(rest, whole))

    def of_one_division(self, rest: Value, whole: Value) -> bool:
        """Whether both divide the same value by the same one."""
        return all(_same(self.known.form(a), self.known.form(b)) for a, b in zip(rest.args, whole.args, strict=True))

    def _is_of_one_thread(self, loop: Loop, equal: _Equal) -> bool:
        """Whether the index is a workgroup of the thread's range, or one less what is `equal`: no other thread has it
        then."""
        ends = [(self._base(loop.lo, "max", "begin"), self._base(loop.hi, "min", "end"))]
        return any(lo is not None and hi is not None and _same(lo, hi) and equal.form(lo) for lo, hi in ends)

    def _base(self, operand: Operand, extreme: str, argument: str) -> Affine | None:
        """`b` where a loop's end is `argument - b`, or no further in than that."""
        if isinstance(operand, Value) and operand.op == extreme:
            return next((b for arg in operand.args if (b := self._base(arg, extreme, argument)) is not None), None)
        form = self.known.form(operand)
        bounds = [atom for atom in form.terms if atom.op == "argument" and atom.attr == argument]
        return form.without(bounds[0]).times(-1) if bounds and form.terms[bounds[0]] == 1 else None


class _Equal:
    """The values that must be equal where two places are, for iterations of `loops`."""

    def __init__(self, overlap: Overlap, loops: Sequence[Loop]) -> None:
        self.overlap, self.known = overlap, overlap.known
        self.loops = loops
        self.atoms: set[Value] = set()

    def all_iterations(self) -> bool:
        """Whether no loop can be in two iterations."""
        return all(self.value(self.known.iteration(loop)) for loop in self.loops)

    def meet(self, one: Extent, other: Extent) -> bool:
        """Take it that both touch the same element; whether they can."""
        if not self._digits([one, other]):
            return False
        for _ in range(_ROUNDS):  # what takes more of them stays unknown
            before = len(self.atoms)
            for rest in self._rests([one, other]):
                if not self._digits(rest):
                    return False
            for known in (*self._dividends(), *self._beginnings()):
                self._digits([known])
            if len(self.atoms) == before:
                break
        return True

    def form(self, form: Affine) -> bool:
        """Whether a form is known to be equal."""
        return all(self.value(atom) for atom in form.terms)

    def value(self, value: Value) -> bool:
        """Whether a value is known to be equal."""
        if value in self.atoms or value.op in ("size", "const"):
            return True
        if value.op == "index" and self.known.iteration(value.attr) is not value:
            return self.value(self.known.iteration(value.attr)) and self.form(self.known.form(value.attr.lo))
        if value.op in ("index", "iteration"):
            return self._is_number(value)
        return value.op in PURE_INDEX and all(not isinstance(arg, Value) or self.value(arg) for arg in value.args)

    def _is_number(self, value: Value) -> bool:
        form = Affine(0, {value: 1})
        most = self.known.most(form)
        return most is not None and most == self.known.least(form)

    def _digits(self, extents: Sequence[Extent]) -> bool:
        """The digits of a place that is equal, from the largest on; whether it can be."""
        first = extents[0].first
        shared = [a for a, c in first.terms.items() if all(e.first.terms.get(a) == c for e in extents)]
        for atom in sorted(shared, key=lambda atom: -abs(first.terms[atom])):
            ranges = self._ranges(extents)
            if ranges is not None and max(low for low, _ in ranges) > min(high for _, high in ranges):
                return False
            count = first.terms[atom]
            extents = [without(extent, atom, count) for extent in extents]
            if self.value(atom):
                continue
            ranges = self._ranges(extents)
            if ranges is None or max(high for _, high in ranges) - min(low for low, _ in ranges) >= abs(count):
                return True
            self.atoms.add(atom)
        ranges = self._ranges(extents)
        return ranges is None or max(low for low, _ in ranges) <= min(high for _, high in ranges)

    def _ranges(self, extents: Sequence[Extent]) -> list[tuple[int, int]] | None:
        """Between which elements each extent lies, in whatever iterations; None where nobody knows."""
        found: list[tuple[int, int]] = []
        for extent in extents:
            low, high = self.known.least(extent.first), self.known.most(extent.end.plus(Affine(-1)))
            if low is None or high is None:
                return None
            found.append((low, high))
        return found

    def _rests(self, extents: Sequence[Extent]) -> Iterator[list[Extent]]:
        """What remains of places after division by what their largest digits have in common, where it is less."""
        counts = {abs(count) for extent in extents for count in extent.first.terms.values()}
        for divisor in set(accumulate(sorted(counts, reverse=True), gcd)):
            rests = [modulo(extent, divisor) for extent in extents]
            ranges = self._ranges(rests)
            if ranges is not None and all(0 <= low and high < divisor for low, high in ranges):
                yield rests

    def _dividends(self) -> Iterator[Extent]:
        """What was divided, of quotients and rests that are equal."""
        wholes, rests = ([atom for atom in self.atoms if atom.op == op] for op in ("udiv", "urem"))
        for rest, _ in [pair for pair in product(rests, wholes) if self.overlap.of_one_division(*pair)]:
            x = self.overlap.normal(self.known.form(rest.args[0]))
            yield Extent(x, x.plus(Affine(1)))

    def _beginnings(self) -> Iterator[Extent]:
        """Where the ranges of loops begin and end, of those in whose index is equal: it lies in between."""
        for loop in self.loops:
            if self.value(loop.index):
                for low, high in product(self._sides(loop.lo, "max"), self._sides(loop.hi, "min")):
                    yield Extent(low, high)

    def _sides(self, operand: Operand, extreme: str) -> Iterator[Affine]:
        yield self.known.form(operand)
        if isinstance(operand, Value) and operand.op == extreme:
            for arg in operand.args:
                yield from self._sides(arg, extreme)


def _same(a: Affine, b: Affine) -> bool:
    return a.constant == b.constant and a.terms == b.terms
