"""Sizes as JSON, and as the names that `fuseline.dims` attributes hold.

`["sum", [[coefficient, atom, ...], ...]]`; an atom is a symbol's name, `["div", a, b]`, `["max", a, b]` or `["min", a,
b]` of sizes. Sizes that are made of sizes share parts, and written out they would double with each step: `["let",
[atom, ...], terms]` has the atoms that occur again, each in terms of those before it; a whole number in the place of an
atom says which one stands there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fuseline.ir.dim import Atom, Dim, Expr, Quotient, Symbol, add, floor_div, maximum, minimum, mul, operands, symbol

LONGEST_PLAIN = 64
"""Numbers, names and operations of a size that is written out whole, whatever occurs in it again."""

_OPERATIONS = {"div": floor_div, "max": maximum, "min": minimum}


def to_json(dim: Dim) -> Any:
    """The form the runtime reads (`fuseline.runtime.sizes`): an int, a sum, or shared atoms and the terms of a sum."""
    if isinstance(dim, int):
        return dim
    numbers: dict[Atom, int] = {}
    atoms: list[Any] = []
    for atom in _shared(dim):
        atoms.append(_atom_json(atom, numbers))
        numbers[atom] = len(numbers)
    terms = _terms_json(dim, numbers)
    return ["let", atoms, terms] if atoms else ["sum", terms]


def _shared(dim: Expr) -> list[Atom]:
    """The atoms that a long size has more than once, those that others are made of first."""
    table = _AtomTable()
    return [atom for atom in table.lengths if atom in table.again] if table.length(dim) > LONGEST_PLAIN else []


class _AtomTable:
    """Every atom of a size, once: how long it is written out, inner ones first, and which occur again."""

    def __init__(self) -> None:
        self.lengths: dict[Atom, int] = {}
        self.again: set[Atom] = set()

    def length(self, dim: Dim) -> int:
        """Numbers, names and operations of `dim` written out."""
        return 1 if isinstance(dim, int) else sum(1 + sum(map(self._atom, monomial)) for monomial, _ in dim.terms)

    def _atom(self, atom: Atom) -> int:
        if isinstance(atom, Symbol):
            return 1
        if atom in self.lengths:
            self.again.add(atom)
        else:
            self.lengths[atom] = 1 + sum([self.length(operand) for operand in operands(atom)])
        return self.lengths[atom]


def _terms_json(dim: Expr, numbers: Mapping[Atom, int]) -> list[Any]:
    return [
        [count, *(numbers[atom] if atom in numbers else _atom_json(atom, numbers) for atom in monomial)]
        for monomial, count in dim.terms
    ]


def _atom_json(atom: Atom, numbers: Mapping[Atom, int]) -> Any:
    if isinstance(atom, Symbol):
        return atom.name
    kind = "div" if isinstance(atom, Quotient) else atom.kind
    return [
        kind,
        *(
            operand if isinstance(operand, int) else ["sum", _terms_json(operand, numbers)]
            for operand in operands(atom)
        ),
    ]


def from_json(data: Any, symbols: Mapping[str, Dim] | None = None) -> Dim:
    """The size that `to_json` wrote; `symbols` gives the symbols by name (default: unbounded ones).

    >>> from_json(to_json(mul(symbol("n"), 3))) == mul(3, symbol("n"))
    True
    """
    return _Reading(symbols or {}).size(data)


class _Reading:
    """Reads one size; atoms that it shares are made once."""

    def __init__(self, symbols: Mapping[str, Dim]) -> None:
        self.symbols = symbols
        self.shared: list[Dim] = []

    def size(self, data: Any) -> Dim:
        """An int, a sum, shared atoms and a sum of them, or an atom by itself. Raises ValueError for anything else."""
        if isinstance(data, int):
            return data
        if data[:1] == ["let"] and len(data) == 3 and isinstance(data[1], list):
            for atom in data[1]:
                self.shared.append(self._atom(atom))
        elif data[:1] == ["let"] or (data[:1] == ["sum"] and len(data) != 2):
            raise ValueError(f"not a size: {data!r}")
        return self._sum(data[-1]) if data[:1] in (["let"], ["sum"]) else self._atom(data)

    def _sum(self, terms: Sequence[Any]) -> Dim:
        total: Dim = 0
        for coefficient, *atoms in terms:
            if type(coefficient) is not int:
                raise ValueError(f"not a coefficient: {coefficient!r}")
            term: Dim = coefficient
            for atom in atoms:
                term = mul(term, self._atom(atom))
            total = add(total, term)
        return total

    def _atom(self, data: Any) -> Dim:
        if isinstance(data, int):
            if not 0 <= data < len(self.shared):
                raise ValueError(f"no atom has the number {data}")
            return self.shared[data]
        if isinstance(data, str):
            return self.symbols.get(data, symbol(data))
        return _OPERATIONS[data[0]](self.size(data[1]), self.size(data[2]))


def to_name(dim: Dim) -> str:
    """The entry of a `fuseline.dims` attribute: decimal text, a symbol's name, or the JSON of an expression."""
    if isinstance(dim, int):
        return str(dim)
    if (
        len(dim.terms) == 1
        and dim.terms[0][1] == 1
        and len(dim.terms[0][0]) == 1
        and isinstance(dim.terms[0][0][0], Symbol)
    ):
        return dim.terms[0][0][0].name
    return json.dumps(to_json(dim), separators=(",", ":"))


def from_name(name: str, symbols: Mapping[str, Dim] | None = None) -> Dim:
    """The size that `to_name` wrote."""
    if name.startswith("["):
        return from_json(json.loads(name), symbols)
    return int(name) if name.isdecimal() else (symbols or {}).get(name, symbol(name))
