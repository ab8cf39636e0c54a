"""Index values of kernels that are the same up to numbers, compared as sums of multiples.

3 * (i + 2) in one kernel, i in another      =>      n0 * i + n1        n0, n1 = (3, 6), (1, 0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fuseline.targets.cpu.kernel_ir.affine import Affine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import I64, Operand, Value, depth_of
from fuseline.targets.cpu.merging.numbers import Numbers


class UnlikeError(Exception):
    """Kernels differ in more than numbers: in `what`, at `where`."""

    def __init__(self, what: str, where: str = "") -> None:
        super().__init__(f"{what} ({where})" if where else what)


class Forms:
    """Makes index values of the merged kernel. `value` answers those that no sum is: indices of loops, what is loaded,
    quotients; `met`, of a value of kernel `i` that all of them have, such as the index of a loop, what it is in each;
    None of others."""

    def __init__(
        self,
        builder: KernelBuilder,
        numbers: Numbers,
        value: Callable[[Sequence[Value]], Any],
        met: Callable[[int, Value], Sequence[Value] | None],
    ) -> None:
        self.builder, self.numbers, self.value, self.met = builder, numbers, value, met
        self._forms: dict[Value, Affine] = {}

    def operand(self, many: Sequence[Operand], more: Sequence[int] | None = None) -> Operand:
        """The index value that is `many[i]`, and `more[i]` in addition, in kernel `i`.

        Raises UnlikeError where some are index values and others not.
        """
        if not all(isinstance(one, int) or one.type == I64 for one in many):
            raise UnlikeError("operands", "an index beside something else")
        forms = [self._form(one) for one in many]
        constant = tuple(form.constant + extra for form, extra in zip(forms, more or (0,) * len(forms), strict=True))
        if more is None and not any(form.terms for form in forms):
            return self.numbers.operand(constant)
        numbers, rest = self.numbers.sum(constant)
        terms = sorted(self._terms(forms), key=lambda term: depth_of(term[0]))
        deepest = depth_of(terms[-1][0]) if terms else 0
        total = self._sum_of([term for term in terms if depth_of(term[0]) < deepest])
        for number in numbers:
            total = self.builder.add(total, number)
        inner = self._sum_of([term for term in terms if depth_of(term[0]) == deepest])
        return self.builder.add(self.builder.add(total, inner), rest)

    def _sum_of(self, terms: Sequence[tuple[Operand, tuple[int, ...]]]) -> Operand:
        total: Operand = 0
        for atom, times in terms:
            total = self.builder.add(total, self.builder.mul(atom, self.numbers.operand(times)))
        return total

    def _terms(self, forms: Sequence[Affine]) -> Iterator[tuple[Operand, tuple[int, ...]]]:
        """Each value of the sums, and how often it is in each of them."""
        for atoms in self._aligned(forms):
            times = tuple(form.terms.get(atom, 0) for form, atom in zip(forms, atoms, strict=True))
            yield self._atom(atoms), times

    def _aligned(self, forms: Sequence[Affine]) -> list[tuple[Value, ...]]:
        """What the sums are of. Values that all kernels have may be no part of some sums, as the index of a loop that
        runs once there; the others are met in the order in which they were made, which is the same everywhere."""
        lists = [sorted(form.terms, key=lambda value: (value.op, value.depth, value.number)) for form in forms]
        if len({len(one) for one in lists}) == 1:
            return list(zip(*lists, strict=True))
        known: dict[tuple[int, ...], tuple[Value, ...]] = {}
        others: list[list[Value]] = [[] for _ in lists]
        for i, value in ((i, value) for i, one in enumerate(lists) for value in one):
            many = self.met(i, value)
            if many is None:
                others[i].append(value)
            else:
                known[tuple(map(id, many))] = tuple(many)
        if len({len(one) for one in others}) != 1:
            raise UnlikeError("index arithmetic", "one sum has more terms")
        return [*known.values(), *zip(*others, strict=True)]

    def _atom(self, atoms: Sequence[Value]) -> Operand:
        build = _FOLDED.get(atoms[0].op)
        if build is None or any(one.op != atoms[0].op for one in atoms):
            return self.value(atoms)
        key = ("atom", *map(id, atoms))
        found = self.builder.recall(key)
        if found is None:
            args = [self.operand(arg) for arg in zip(*(one.args for one in atoms), strict=True)]
            found = build(self.builder, *args)
            self.builder.remember(key, found)
        return found

    def _form(self, operand: Operand) -> Affine:
        if isinstance(operand, int):
            return Affine(operand)
        found = self._forms.get(operand)
        if found is None:
            found = self._forms[operand] = self._sum(operand)
        return found

    def _sum(self, value: Value) -> Affine:
        if value.op == "const":
            return Affine(int(value.attr))
        if value.op in ("add", "sub"):
            a, b = (self._form(arg) for arg in value.args)
            return a.plus(b, 1 if value.op == "add" else -1)
        if value.op == "mul":
            a, b = (self._form(arg) for arg in value.args)
            if not b.terms or not a.terms:
                return a.times(b.constant) if not b.terms else b.times(a.constant)
        return Affine(0, {value: 1})


_FOLDED: dict[str, Callable[..., Any]] = {
    "mul": lambda k, a, b: k.mul(a, b),
    "udiv": lambda k, a, b: k.div(a, b),
    "urem": lambda k, a, b: k.rem(a, b),
    "min": lambda k, a, b: k.min(a, b),
    "max": lambda k, a, b: k.max(a, b),
}
