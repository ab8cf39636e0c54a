"""Recurrent layers: every direction, sequence lengths, initial states."""

from __future__ import annotations

from tests.fuzz.exclusions import exclude
from tests.fuzz.graph import Graph
from tests.fuzz.recipe import recipe
from tests.fuzz.tensors import F32, I32, Value

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@recipe("RNN", "GRU", "LSTM", weight=0.35)
def recurrent(g: Graph, op: str) -> None:
    """Over [time, batch, width]."""
    x = g.new_input(
        F32, [g.choose([1, 3, 4, *g.setting.symbols]), g.choose([1, 2, *g.setting.symbols]), g.number(1, 5)]
    )
    exclude("recurrence-of-no-step", not x.every(lambda a: a.size))
    direction = g.choose(["forward", "reverse", "bidirectional"])
    ways, hidden, rows = 1 + (direction == "bidirectional"), g.number(1, 6), GATES[op]
    weights: list[Value | None] = [g.constant(g.contents(F32, (ways, rows * hidden, n))) for n in (x.shape[2], hidden)]
    bias = g.constant(g.contents(F32, (ways, 2 * rows * hidden))) if g.chance(0.5) else None
    lengths = _lengths(g, x)
    states = [_state(g, x, ways, hidden) for _ in range(2 if op == "LSTM" else 1)]
    inputs = [x, *weights, bias, lengths, *states]
    while inputs[-1] is None:
        inputs.pop()
    extra = {"linear_before_reset": g.number(0, 1)} if op == "GRU" else {}
    g.add_all(
        op, *inputs, outputs=g.number(1, 3 if op == "LSTM" else 2), hidden_size=hidden, direction=direction, **extra
    )


def _lengths(g: Graph, x: Value) -> Value | None:
    if not (x.fixed(1) and x.shape[1]) or g.chance(0.6):
        return None
    longest = min(shape[0] for shape in x.shapes)
    return g.constant(g.rng.integers(min(1, longest), longest + 1, x.shape[1]).astype(I32)) if longest else None


def _state(g: Graph, x: Value, ways: int, hidden: int) -> Value | None:
    return g.constant(g.contents(F32, (ways, x.shape[1], hidden))) if x.fixed(1) and g.chance(0.4) else None
