"""Sizes of a program as C: every distinct one is a word of the table `v`, filled once per assignment of the symbols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuseline.runtime.sizes import Size


class SizeTable:
    """The sizes that a source refers to; `symbols` gives each symbol's place in the caller's struct."""

    def __init__(self, symbols: Mapping[str, int]) -> None:
        self._symbols = symbols
        self._places: dict[Size, int] = {}

    def __call__(self, size: Size) -> str:
        """C text for a size: a number, or a word of the table."""
        if isinstance(size, int):
            return _number(size)
        return f"v[{self._places.setdefault(size, len(self._places))}]"

    @property
    def length(self) -> int:
        """Words of the table."""
        return len(self._places)

    def statements(self) -> list[str]:
        """What fills the table; `s` are the symbols' values, `put` refuses numbers that are out of range."""
        return [self._statement(size, place) for size, place in self._places.items()]

    def _statement(self, size: Any, place: int) -> str:
        atoms = size[1] if size[0] == "let" else ()
        shared = "".join(f"const wide a{number} = {self._atom(atom)}; " for number, atom in enumerate(atoms))
        return f"{{ {shared}if (!put(v + {place}, {self._sum(size)})) return 0; }}"

    def _sum(self, size: Any) -> str:
        if isinstance(size, int):
            return _number(size)
        return f"({' + '.join(self._product(term) for term in size[-1]) or '(wide)0'})"

    def _product(self, term: Any) -> str:
        return " * ".join([f"(wide){_number(term[0])}", *(self._atom(atom) for atom in term[1:])])

    def _atom(self, atom: Any) -> str:
        if isinstance(atom, int):
            return f"a{atom}"
        if isinstance(atom, str):
            return f"(wide)s[{self._symbols[atom]}]"
        return f"wide_{atom[0]}({self._sum(atom[1])}, {self._sum(atom[2])})"


def _number(value: int) -> str:
    return f"INT64_C({value})" if value >= 0 else f"(-INT64_C({-value}))"
