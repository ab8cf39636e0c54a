"""The conditions in force while a kernel is walked, and the bounds that were found under them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from fuseline.targets.cpu.kernel_ir.affine import Affine, Fact
from fuseline.targets.cpu.kernel_ir.types import Value

_Key: TypeAlias = tuple[frozenset[tuple[Value, int]], int, int]
_Found: TypeAlias = dict[_Key, tuple[int, int | None]]
"""By form and lane: how deep in the search a bound was looked for, and the bound."""


class Conditions:
    """`facts` hold where the walk is."""

    def __init__(self) -> None:
        self.facts: Sequence[Fact] = ()
        self._found: _Found = {}
        self._found_always = self._found

    @contextmanager
    def assuming(self, facts: Sequence[Fact]) -> Generator[None]:
        """Inside, these conditions are in force as well."""
        return self._with((*self.facts, *facts), {} if facts else self._found)

    @contextmanager
    def unconditionally(self) -> Generator[None]:
        """Inside, no condition is in force."""
        return self._with((), self._found_always)

    def _with(self, facts: Sequence[Fact], found: _Found) -> Generator[None]:
        before = self.facts, self._found
        self.facts, self._found = facts, found
        yield
        self.facts, self._found = before

    def found(self, form: Affine, lane: int, depth: int, search: Callable[[], int | None]) -> int | None:
        """The bound of `form` that `search` finds at this depth, or found before under the same conditions, at this
        depth or nearer to the start."""
        key = (frozenset(form.terms.items()), form.constant, lane)
        at, bound = self._found.get(key, (depth + 1, None))
        if at > depth:
            bound = search()
            self._found[key] = depth, bound
        return bound
