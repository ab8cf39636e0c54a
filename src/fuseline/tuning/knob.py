"""One decision of a search, and a choice for each of them: what the search turns, whatever it turns it for.

knob        plan/4f0c..  (join | apart)      kernel/9a31..  (default | 6x32 | winograd4)      threads  (2 | 1)
configuration   {"plan/4f0c..": "apart", "threads": "1"}        the others stay at their first choice
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

SPACES = ("plan", "passes", "dedup", "kernels", "threads")
"""What a search may range over: which ops run together, variants of the pipeline, how much dispatches share, tile,
algorithm and order of each class of kernels, and threads."""

Configuration: TypeAlias = Mapping[str, str]
"""Choices by the name of their knob, without those that are the default."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One decision. `name` is the same in every search of the same graph: made of structural ids, never of positions.
    The first of `choices` is what a compile does by default. Layers that repeat share one knob.

    Attributes:
        space: one of `SPACES`. detail: what is decided, for people. gain_ns: what the cost model expects of the second
        choice in nanoseconds of a run, below zero where it costs; near zero it knows least. nodes: the source nodes
        concerned. ops: sets of structural ids: of a knob about a plan, each set is what is together or apart; of any
        other, the members of each dispatch that it changes. None where it changes them all.
    """

    name: str
    space: str
    choices: tuple[str, ...]
    detail: str = ""
    gain_ns: float = 0.0
    nodes: tuple[str, ...] = ()
    ops: tuple[tuple[str, ...], ...] = ()


def without_defaults(configuration: Configuration, knobs: Iterable[Knob]) -> dict[str, str]:
    """The choices of `configuration` that are no default, in the order of `knobs`; a knob that is not there is left
    out.

    >>> knobs = [Knob("dedup", "dedup", ("exact", "none")), Knob("threads", "threads", ("2", "1"))]
    >>> without_defaults({"threads": "2", "dedup": "none"}, knobs)
    {'dedup': 'none'}
    """
    return {
        knob.name: configuration[knob.name]
        for knob in knobs
        if configuration.get(knob.name, knob.choices[0]) != knob.choices[0]
    }
