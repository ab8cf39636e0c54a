"""Index values by the iterations of loops, and which iterations a place in memory tells apart.

`index_bounds.py` bounds indices for given sizes. Here sizes are not given, and an index is its loop's first value and
`step` times the number of the iteration, so that nested ranges (`for j in range(i * 8, i * 8 + 8)`) are a number in
digits: `8 * i + j'`, `j'` below 8. Two places that agree in a number of which every digit is larger than all that
follow can only agree in every digit:

    1024 * row + 16 * vector + lane, vector < 64, lane < 16       places are equal only where row and vector are
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fuseline.targets.cpu.kernel_ir.affine import Affine
from fuseline.targets.cpu.kernel_ir.decided import side_of
from fuseline.targets.cpu.kernel_ir.index_bounds import IndexBounds
from fuseline.targets.cpu.kernel_ir.types import I64, Kernel, Loop, Value

MOST_WORKGROUPS = 1 << 40
"""Of a grid that nobody bounds."""


class IterationBounds(IndexBounds):
    """What is known of the index values of `kernel` for all sizes, but for those that are always the same (`sizes`, by
    position), and any range of a grid of at most `workgroups`."""

    def __init__(self, kernel: Kernel, workgroups: int | None, sizes: Mapping[int, int] | None = None) -> None:
        super().__init__(kernel, [0] * len(kernel.sizes), MOST_WORKGROUPS if workgroups is None else workgroups, {})
        fixed = sizes or {}
        self.numbers = {size: fixed[position] for position, size in enumerate(kernel.sizes) if position in fixed}
        self._most_sizes = kernel.size_upper_bounds
        self._iterations: dict[Loop, Value] = {}
        self._copies: dict[tuple[int, int], Value] = {}
        self._most: dict[tuple[frozenset[tuple[Value, int]], int], int | None] = {}

    def iteration(self, loop: Loop) -> Value:
        """The number of the iteration of a loop; its index, of one that begins at what is no number in digits."""
        if not all(_is_digit(atom) for atom in self.form(loop.lo).terms):
            return loop.index
        found = self._iterations.get(loop)
        if found is None:
            index = loop.index
            found = self._iterations[loop] = Value("iteration", I64, (), loop, index.number, index.depth)
        return found

    def never_runs(self, loop: Loop) -> bool:
        """Whether a loop is known to have no iteration: what is left over of tiles that are all whole, in code that
        others share."""
        most = self.most(self.form(loop.hi).plus(self.form(loop.lo), -1))
        return most is not None and most <= 0

    def copy(self, stride: int, count: int) -> Value:
        """The number of a copy of code that is written out `count` times, a stride apart."""
        found = self._copies.get((stride, count))
        if found is None:
            found = self._copies[stride, count] = Value("copy", I64, (), count, -len(self._copies) - 1, 0)
        return found

    def most(self, form: Affine) -> int | None:
        """A number that `form` does not exceed; looked for once whatever the constant, which only moves it."""
        if not form.terms:
            return form.constant
        key = frozenset(form.terms.items()), self.lane
        if key not in self._most:
            self._most[key] = super().most(Affine(0, form.terms))
        found = self._most[key]
        return None if found is None else found + form.constant

    def _form(self, value: Value) -> Affine:
        form = super()._form(value)
        if value.op == "index" and list(form.terms) == [value]:
            step = self.iteration(value.attr)
            return form if step is value else self.form(value.attr.lo).plus(Affine(0, {step: value.attr.step}))
        if value.op in ("min", "max"):
            return side_of(self, value) or form
        return self._undivided(value) or form if value.op in ("udiv", "urem") else form

    def _undivided(self, division: Value) -> Affine | None:
        """The rest, or the quotient 0, of what is always less than what divides it: the outermost coordinate of a grid
        that keeps all of them."""
        operand, divisor = (self.form(arg) for arg in division.args)
        least = self.least(operand)
        if least is None or least < 0:
            return None
        most = self.most(operand.plus(divisor, -1))
        return None if most is None or most >= 0 else operand if division.op == "urem" else Affine()

    def _bounds(self, atom: Value, above: bool) -> Iterator[list[Affine]]:
        if atom.op == "iteration":
            yield from self._ends(atom.attr, above)
        elif atom.op == "copy":
            yield [Affine(atom.attr - 1 if above else 0)]
        elif atom.op == "size":
            most = self._most_sizes.get(atom.attr)
            yield from [[Affine()]] if not above else [] if most is None else [[Affine(most)]]
        else:
            yield from super()._bounds(atom, above)

    def upper_before(self, atom: Value, form: Affine) -> int | None:
        """What is divided is not negative where the quotient or rest is used: whoever divides sees to that
        (`Arithmetic.div`)."""
        found = super().upper_before(atom, form)
        divided = self.form(atom.args[0]).plus(form) if atom.op in ("udiv", "urem") else None
        if divided is not None and not divided.terms and divided.constant == 0:
            return 0 if found is None else min(found, 0)
        return found

    def _ends(self, loop: Loop, above: bool) -> Iterator[list[Affine]]:
        if not above:
            yield [Affine()]
            return
        span = self.form(loop.hi).plus(self.form(loop.lo), -1)
        most = self.most(span)
        if most is not None:
            yield [Affine(max(most - 1, 0) // loop.step)]
        if all(number % loop.step == 0 for number in (span.constant, *span.terms.values())):
            shares = {atom: count // loop.step for atom, count in span.terms.items()}
            yield [Affine(span.constant // loop.step - 1, shares)]


_DIGITS = frozenset({"index", "iteration", "size", "add", "sub", "mul", "udiv", "urem"})


def _is_digit(value: Value) -> bool:
    """Whether a value is computed from indices by arithmetic; not what begins a thread's range of workgroups."""
    arguments = [] if value.op in ("index", "iteration", "size") else value.args
    return value.op in _DIGITS and all(not isinstance(arg, Value) or _is_digit(arg) for arg in arguments)
