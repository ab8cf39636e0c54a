"""The IR after passes: of those that are named each time, else where the text changed."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp, StringAttr

from fuseline.ir.context import new_context
from fuseline.ir.printed_after import START, PrintedAfter


def _told(steps: Iterable[tuple[str, str]], named: frozenset[str] | None = None) -> list[tuple[str, str]]:
    """What is printed while passes leave a module with a mark."""
    module, ctx, found = ModuleOp([]), new_context(), list[tuple[str, str]]()
    observer = PrintedAfter(lambda position, text: found.append((position, text)), named)
    for position, mark in steps:
        module.attributes["mark"] = StringAttr(mark)
        observer(position, module, ctx)
    return [(position, text.split('"')[1]) for position, text in found]


STEPS = [(START, "a"), ("layout/one", "a"), ("layout/two", "b"), ("fusion/one", "b"), ("fusion/three", "a")]


def test_what_changes_the_text_is_printed() -> None:
    assert _told(STEPS) == [("layout/two", "b"), ("fusion/three", "a")]


def test_named_passes_and_phases_are_printed_each_time() -> None:
    assert _told(STEPS, frozenset({"one"})) == [("layout/one", "a"), ("fusion/one", "b")]
    assert _told(STEPS, frozenset({"fusion"})) == [("fusion/one", "b"), ("fusion/three", "a")]
    assert _told(STEPS, frozenset({"two", START})) == [("layout/two", "b")]
    assert _told(STEPS, frozenset()) == []
