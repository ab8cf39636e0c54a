"""Sizes as artifacts hold them: an int, or a nested tuple read from the JSON form of `fuseline.ir.dim_json.to_json`.

`("sum", ((coefficient, atom, ...), ...))`; an atom is a symbol's name, `("div", a, b)` (rounded down, 0 by 0), `("max",
a, b)` or `("min", a, b)`. Where a long size has atoms more than once: `("let", (atom, ...), terms)`; an int in the
place of an atom is the number of an earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from fuseline.runtime.strict import whole

Size: TypeAlias = int | tuple[Any, ...]

_OPERATIONS: dict[str, Callable[[int, int], int]] = {"div": lambda a, b: a // b if b else 0, "max": max, "min": min}


def size_from_json(data: Any) -> Size:
    """A size from parsed JSON; raises ValueError for anything else.

    >>> size_from_json(["sum", [[4, "n"], [1]]])
    ('sum', ((4, 'n'), (1,)))
    """
    if isinstance(data, list) and len(data) == 3 and data[0] == "let" and isinstance(data[1], list):  # pyright: ignore[reportUnknownArgumentType]
        atoms = tuple(_atom(atom, number) for number, atom in enumerate(data[1]))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return "let", atoms, _terms(data[2], len(atoms))
    return _size(data, 0)


def _size(data: Any, shared: int) -> Size:
    """A size in which the numbers below `shared` stand for atoms."""
    if isinstance(data, int) and not isinstance(data, bool):
        return whole(data)
    if isinstance(data, list) and len(data) == 2 and data[0] == "sum":  # pyright: ignore[reportUnknownArgumentType]
        return "sum", _terms(data[1], shared)
    raise ValueError(f"not a size: {data!r}")


def _terms(data: Any, shared: int) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise ValueError(f"not the terms of a size: {data!r}")
    return tuple(_term(term, shared) for term in data)  # pyright: ignore[reportUnknownVariableType]


def _term(data: Any, shared: int) -> tuple[Any, ...]:
    if not isinstance(data, list) or not data or type(data[0]) is not int:
        raise ValueError(f"not a term of a size: {data!r}")
    return whole(data[0]), *(_atom(atom, shared) for atom in data[1:])  # pyright: ignore[reportUnknownVariableType]


def _atom(data: Any, shared: int) -> Any:
    if isinstance(data, str) or (type(data) is int and 0 <= data < shared):
        return data
    if isinstance(data, list) and len(data) == 3 and data[0] in _OPERATIONS:  # pyright: ignore[reportUnknownArgumentType]
        return data[0], _size(data[1], shared), _size(data[2], shared)
    raise ValueError(f"not an atom of a size: {data!r}")


def symbol_of(size: Size) -> str | None:
    """The symbol's name where `size` is one symbol and nothing else, else None."""
    if isinstance(size, tuple) and size[0] == "sum" and len(size[1]) == 1:
        term = size[1][0]
        if len(term) == 2 and term[0] == 1 and isinstance(term[1], str):
            return term[1]
    return None


@lru_cache(maxsize=4096)
def symbols_of(size: Size) -> frozenset[str]:
    """Every symbol's name in `size`. Runs ask for those of a program's sizes again and again."""
    if isinstance(size, int):
        return frozenset()
    atoms = [*(size[1] if size[0] == "let" else ()), *(atom for term in size[-1] for atom in term[1:])]
    found = frozenset(atom for atom in atoms if isinstance(atom, str))
    return found.union(*(symbols_of(operand) for atom in atoms if isinstance(atom, tuple) for operand in atom[1:]))


class SizeEvaluator:
    """Sizes under one assignment of the symbols; equal expressions are computed once."""

    def __init__(self, values: Mapping[str, int]) -> None:
        self._values = values
        self._known: dict[Size, int] = {}

    def __call__(self, size: Size) -> int:
        """The number that `size` is; raises KeyError for a symbol without a value."""
        if isinstance(size, int):
            return size
        found = self._known.get(size)
        if found is None:
            found = self._known[size] = self._computed(size, [])
        return found

    def _computed(self, size: tuple[Any, ...], shared: list[int]) -> int:
        if size[0] == "let":
            for atom in size[1]:
                shared.append(self._atom(atom, shared))
        return sum(self._product(term, shared) for term in size[-1])

    def _product(self, term: tuple[Any, ...], shared: list[int]) -> int:
        out: int = term[0]
        for atom in term[1:]:
            out *= self._values[atom] if isinstance(atom, str) else self._atom(atom, shared)
        return out

    def _atom(self, atom: Any, shared: list[int]) -> int:
        if isinstance(atom, int):
            return shared[atom]
        return (
            self._values[atom]
            if isinstance(atom, str)
            else _OPERATIONS[atom[0]](self._operand(atom[1], shared), self._operand(atom[2], shared))
        )

    def _operand(self, size: Size, shared: list[int]) -> int:
        """A size inside of another one; where numbers stand for atoms, what they stand for decides."""
        return self._computed(size, shared) if shared and isinstance(size, tuple) else self(size)
