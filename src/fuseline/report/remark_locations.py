"""Where remarks point to: LLVM's viewers show a remark at a line of a source file, and a model has none. So its nodes
are listed, one a line, and that is the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_IN_TEXT = re.compile(r"^(.+?):(\d+)(?::(\d+))?$")


class Location(NamedTuple):
    """A line (from 1) and column (from 0) of a file."""

    file: str
    line: int
    column: int


class Listing:
    """The nodes of a model as the lines of `file`. Ops that were read from text are where they stand in that."""

    def __init__(self, file: str, nodes: Sequence[str]) -> None:
        self.file, self._nodes = file, tuple(nodes)
        self._line = {node: number for number, node in reversed(list(enumerate(nodes, 1)))}

    @property
    def text(self) -> str:
        """The file's content."""
        return "".join("".join(c if c.isprintable() else "?" for c in node) + "\n" for node in self._nodes)

    def location(self, nodes: Iterable[str]) -> Location | None:
        """The location of the first of `nodes` that has one."""
        return next((found for node in nodes if (found := self._of(node)) is not None), None)

    def _of(self, node: str) -> Location | None:
        if node in self._line:
            return Location(self.file, self._line[node], 0)
        stands = _IN_TEXT.match(node)
        return None if stands is None else Location(stands[1], int(stands[2]), int(stands[3] or 0))
