"""Tables in GitHub's Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table: the first column to the left, the others to the right.

    >>> markdown_table(["model", "dispatches"], [["a|b", "3"]])
    ['| model | dispatches |', '|---|---:|', '| a\\\\|b | 3 |']
    """
    rule = "|---" + "|---:" * (len(header) - 1) + "|"
    return [_line(header), rule, *(_line(row) for row in rows)]


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
