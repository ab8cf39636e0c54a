"""Sizes as artifacts hold them: an int, or a nested tuple read from the JSON form of `fuseline.ir.dim.to_json`.

`("sum", ((coefficient, atom, ...), ...))`; an atom is a symbol's name, `("div", a, b)` (rounded down, 0 by 0), `("max", a, b)` or `("min", a, b)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from fuseline.runtime.strict import whole

Size: TypeAlias = int | tuple[Any, ...]

_OPERATIONS: dict[str, Callable[[int, int], int]] = {"div": lambda a, b: a // b if b else 0, "max": max, "min": min}


def size_from_json(data: Any) -> Size:
    """A size from parsed JSON; raises ValueError for anything else.

    >>> size_from_json(["sum", [[4, "n"], [1]]])
    ('sum', ((4, 'n'), (1,)))
    """
    if isinstance(data, int) and not isinstance(data, bool):
        return whole(data)
    if isinstance(data, list) and len(data) == 2 and data[0] == "sum" and isinstance(data[1], list):  # pyright: ignore[reportUnknownArgumentType]
        return "sum", tuple(_term(term) for term in data[1])  # pyright: ignore[reportUnknownVariableType]
    raise ValueError(f"not a size: {data!r}")


def _term(data: Any) -> tuple[Any, ...]:
    if not isinstance(data, list) or not data or type(data[0]) is not int:
        raise ValueError(f"not a term of a size: {data!r}")
    return whole(data[0]), *(_atom(atom) for atom in data[1:])  # pyright: ignore[reportUnknownVariableType]


def _atom(data: Any) -> Any:
    if isinstance(data, str):
        return data
    if isinstance(data, list) and len(data) == 3 and data[0] in _OPERATIONS:  # pyright: ignore[reportUnknownArgumentType]
        return data[0], size_from_json(data[1]), size_from_json(data[2])
    raise ValueError(f"not an atom of a size: {data!r}")


def symbol_of(size: Size) -> str | None:
    """The symbol's name where `size` is one symbol and nothing else, else None."""
    if isinstance(size, tuple) and len(size[1]) == 1:
        term = size[1][0]
        if len(term) == 2 and term[0] == 1 and isinstance(term[1], str):
            return term[1]
    return None


def symbols_of(size: Size) -> set[str]:
    """Every symbol's name in `size`."""
    if isinstance(size, int):
        return set()
    found: set[str] = set()
    for term in size[1]:
        for atom in term[1:]:
            found |= {atom} if isinstance(atom, str) else symbols_of(atom[1]) | symbols_of(atom[2])
    return found


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
            found = self._known[size] = sum(self._product(term) for term in size[1])
        return found

    def _product(self, term: tuple[Any, ...]) -> int:
        out: int = term[0]
        for atom in term[1:]:
            out *= self._values[atom] if isinstance(atom, str) else _OPERATIONS[atom[0]](self(atom[1]), self(atom[2]))
        return out
