"""The case of a theme and a number: inputs, then parts that mostly go on where the last one ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from tests.fuzz.case import Case
from tests.fuzz.evaluate import Rejected
from tests.fuzz.generate import finished, setting
from tests.fuzz.graph import Graph
from tests.fuzz.tensors import F32, Value
from tests.fuzz.theme import Part, Theme
from tests.fuzz.themes import THEMES

ELEMENTS = 200_000
"""The most of a value: more takes the references longer and shows nothing else."""

BEHIND_THE_LAST = 0.75
"""How often a part reads what the one before it made, where that fits."""

TRIES = 6
"""How often parts are drawn per part that is wanted."""


class ThemedGraph(Graph):
    """A graph of large values, which grows from what is there: no part makes an input beside the first ones by
    chance."""

    def pick(
        self, dtypes: Iterable[np.dtype[Any]], test: Callable[[Value], bool] = lambda _: True, *, fresh: float = 0.0
    ) -> Value:
        """As `Graph.pick`, of values that a run computes."""
        return Graph.pick(self, dtypes, lambda value: not value.known and test(value), fresh=0.0)


def make_themed(name: str, number: int) -> Case:
    """The case of a number, the same one on every machine with the same libraries."""
    theme = THEMES[name]
    rng = np.random.default_rng([number, crc32(name.encode())])
    symbols = setting(rng, symbolic=theme.symbolic, pool=theme.sizes)
    graph = ThemedGraph(rng, int(rng.choice(theme.opsets)), symbols, False, [F32], elements=ELEMENTS)
    for _ in range(graph.choose([1, 1, 2])):
        _attempt(graph, theme.first)
    wanted, done = graph.number(*theme.parts), 0
    for _ in range(TRIES * wanted):
        done += _attempt(graph, theme.others)
        if done == wanted:
            break
    return finished(graph, rng, theme_seed(name, number))


def _attempt(graph: Graph, parts: Sequence[Part]) -> bool:
    """Whether one of the parts, drawn by weight, fitted."""
    known = [part for part in parts if part.since <= graph.opset <= part.until]
    shares = np.array([part.weight for part in known])
    part = known[int(graph.rng.choice(len(known), p=shares / shares.sum()))]
    values, steps = len(graph.values), len(graph.steps)
    try:
        part.function(graph)
    except Rejected:
        return False
    made = {value.name for value in graph.values[values:] if not value.known}
    graph.preferred = made if graph.chance(BEHIND_THE_LAST) else set()
    return len(graph.steps) > steps


FIRST = 10**13
"""The first seed that stands for a theme's case."""

EACH = 10**12
"""How many seeds a theme has: none other's, and the same ones whatever themes there are."""


def theme_seed(name: str, number: int) -> int:
    """The seed of a theme's case."""
    return FIRST + crc32(name.encode()) * EACH + number


def theme_of(seed: int) -> tuple[Theme, int] | None:
    """The theme and the number that a seed stands for; None where it stands for something else."""
    if seed < FIRST:
        return None
    code, number = divmod(seed - FIRST, EACH)
    return next(theme for theme in THEMES.values() if crc32(theme.name.encode()) == code), number
