"""The table of recipes: each adds one or a few nodes to a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tests.fuzz.graph import Graph

Function: TypeAlias = "Callable[[Graph, str], object]"


@dataclass(frozen=True, slots=True)
class Recipe:
    """`function(graph, op_type)` adds the operator from opset `since` to `until`; it raises Rejected where nothing
    fits."""

    op_type: str
    function: Function
    since: int
    until: int
    weight: float


RECIPES: list[Recipe] = []


def recipe(*op_types: str, since: int = 1, until: int = 99, weight: float = 1.0) -> Callable[[Function], Function]:
    """Register a function for these operators; `weight` is how often each is drawn, 1 being usual."""

    def register(function: Function) -> Function:
        RECIPES.extend(Recipe(op_type, function, since, until, weight) for op_type in op_types)
        return function

    return register
