"""The table of themes: what a kind of model is put together from, at sizes such models have.

A theme draws its graphs from parts of its own (`tests/fuzz/themes/`) and from recipes that fit beside them:

    first part (inputs)  ->  part  ->  part  ->  ..         each mostly behind the one before
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.fuzz.recipes import RECIPES

if TYPE_CHECKING:
    from tests.fuzz.graph import Graph

Function: TypeAlias = "Callable[[Graph], object]"


@dataclass(frozen=True, slots=True)
class Part:
    """`function(graph)` adds inputs or nodes from opset `since` to `until`; it raises Rejected where nothing fits."""

    name: str
    function: Function
    weight: float
    since: int = 1
    until: int = 99


@dataclass(slots=True)
class Theme:
    """A theme registers itself under its name.

    Args:
        sizes: of symbols. symbolic: the share of graphs that has any. opsets: the operator sets that are drawn. parts:
        how many there are in a graph, at the least and at the most.
    """

    name: str
    sizes: Sequence[int]
    symbolic: float = 0.35
    opsets: Sequence[int] = (13, 17, 18, 19, 20, 21, 23)
    parts: tuple[int, int] = (2, 8)
    first: list[Part] = field(default_factory=list[Part])
    others: list[Part] = field(default_factory=list[Part])

    def __post_init__(self) -> None:
        THEMES[self.name] = self

    def start(self, weight: float = 1.0) -> Callable[[Function], Function]:
        """Register a function that makes the inputs which graphs begin with."""
        return partial(_registered, self.first, weight)

    def part(self, weight: float = 1.0, since: int = 1) -> Callable[[Function], Function]:
        """Register a function that adds nodes; `weight` is how often it is drawn, 1 being usual."""
        return partial(_registered, self.others, weight, since=since)

    def recipes(self, *op_types: str, weight: float = 1.0) -> None:
        """The recipes of these operators, with one weight for all of them together."""
        found = [entry for entry in RECIPES if entry.op_type in op_types]
        total = sum(entry.weight for entry in found)
        for entry in found:
            function = partial(_by_recipe, entry.function, entry.op_type)
            self.others.append(Part(entry.op_type, function, weight * entry.weight / total, entry.since, entry.until))


THEMES: dict[str, Theme] = {}


def _registered(parts: list[Part], weight: float, function: Function, since: int = 1) -> Function:
    parts.append(Part(function.__name__, function, weight, since))
    return function


def _by_recipe(function: Any, op_type: str, graph: Graph) -> None:
    function(graph, op_type)
