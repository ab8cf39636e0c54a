"""Sequences and optional values: made, changed and read again, so that what follows are tensors."""

from __future__ import annotations

import numpy as np

from tests.fuzz.graph import Graph
from tests.fuzz.recipe import recipe
from tests.fuzz.tensors import F32, I64, NUMBERS, Value


def _sequence(g: Graph) -> Value:
    x = g.pick(NUMBERS)
    items = [x, *(g.pick([x.dtype], lambda v: v.rank == x.rank, fresh=0) for _ in range(g.number(0, 2)))]
    return g.add("SequenceConstruct", *items)


def _at(g: Graph, number: int) -> Value:
    return g.constant(np.asarray(number, I64))


@recipe("SequenceAt", since=11, weight=0.15)
def at(g: Graph, op: str) -> None:
    """One item of it, after an insertion or a removal at times."""
    made = _sequence(g)
    if g.chance(0.4):
        first = g.add(op, made, _at(g, 0))
        made = g.add("SequenceInsert", made, first, *([_at(g, 0)] if g.chance(0.5) else []))
    if made.every(lambda items: len(items) > 1) and g.chance(0.4):
        made = g.add("SequenceErase", made, *([_at(g, 0)] if g.chance(0.5) else []))
    g.add(op, made, _at(g, g.choose([0, -1])))
    g.add("SequenceLength", made)


@recipe("ConcatFromSequence", since=11, weight=0.15)
def concat(g: Graph, op: str) -> None:
    """Joined, or stacked along a new axis."""
    x = g.pick(NUMBERS, lambda v: v.rank > 0)
    made = g.add("SequenceConstruct", x, *(g.like(x) for _ in range(g.number(0, 2))))
    g.add(op, made, axis=g.number(0, x.rank - 1), new_axis=g.number(0, 1))


@recipe("SplitToSequence", since=11, weight=0.15)
def split(g: Graph, op: str) -> None:
    """Parts of equal size, the last one smaller."""
    x = g.pick((F32, I64), lambda v: v.rank > 0 and min(s[0] for s in v.shapes) > 0)
    made = g.add(op, x, *([_at(g, g.number(1, 2))] if g.chance(0.6) else []), axis=0, keepdims=1)
    g.add("SequenceAt", made, _at(g, 0))


@recipe("OptionalGetElement", since=16, weight=0.15)
def optional(g: Graph, op: str) -> None:
    """Wrapped and unwrapped."""
    made = g.add("Optional", g.pick(NUMBERS))
    made.kind = "optional"
    g.add("OptionalHasElement", made)
    g.add(op, made)
