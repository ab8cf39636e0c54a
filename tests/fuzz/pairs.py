"""Every operator behind every other: what a pair of operators does to fusion is met by design here, not by luck.

    input -> first -> second -> an elementwise op or nothing       over symbolic sizes, three times of four
             |
             returned, too, or read by a third, at times

Number `n` stands for the pair `n` modulo their count, drawn anew at every turn: so each block of `pair_count()` numbers
holds every pair once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.fuzz.case import Case
from tests.fuzz.evaluate import Rejected
from tests.fuzz.generate import finished, setting
from tests.fuzz.graph import Graph
from tests.fuzz.recipe import Recipe
from tests.fuzz.recipes import RECIPES
from tests.fuzz.tensors import F32, F64, I32, I64

OPSETS = (13, 17, 19, 21)
BEHIND = ("Add", "Mul", "Relu", "Neg", "Transpose", "Concat", "ReduceSum", "Cast")
TRIES = 8


def pair_count() -> int:
    """How many pairs there are."""
    return len(RECIPES) ** 2


def make_pair(number: int) -> Case:
    """The case of a number; where the pair does not fit together in a few tries, of what came of the last one."""
    first, second = divmod(number % pair_count(), len(RECIPES))
    rng = np.random.default_rng([number, 7])
    graph = _drawn(rng, RECIPES[first], RECIPES[second])
    for _ in range(TRIES):
        if graph.hangs_together:
            break
        graph = _drawn(rng, RECIPES[first], RECIPES[second])
    case = finished(graph, rng, number)
    fusion = "default" if case.choices.fusion == "none" else case.choices.fusion
    return case.replace(choices=replace(case.choices, fusion=fusion))


class _Pair(Graph):
    """A graph that knows whether its second operator reads the first."""

    hangs_together = False


def _drawn(rng: np.random.Generator, first: Recipe, second: Recipe) -> _Pair:
    dtypes = [F32, F32, F32, F32, [I64, I32, F64][int(rng.integers(3))]]
    opsets = [n for n in OPSETS if all(entry.since <= n <= entry.until for entry in (first, second))]
    opset = int(rng.choice(opsets)) if opsets else max(first.since, second.since)
    graph = _Pair(rng, opset, setting(rng, symbolic=0.75), False, dtypes)
    if not _added(graph, first):
        return graph
    made = graph.preferred = {name for step in graph.steps for name in step.outputs}
    before = len(graph.steps)
    graph.hangs_together = _added(graph, second) and any(
        graph.preferred.intersection(step.inputs) for step in graph.steps[before:]
    )
    if graph.chance(0.5):
        behind = [entry for entry in RECIPES if entry.op_type in BEHIND and entry.since <= opset <= entry.until]
        graph.preferred = {name for step in graph.steps[before:] for name in step.outputs}
        _added(graph, graph.choose(behind))
    if graph.chance(0.4):
        graph.preferred = made
        _added(graph, graph.choose([entry for entry in RECIPES if entry.since <= opset <= entry.until]))
    return graph


def _added(graph: Graph, entry: Recipe) -> bool:
    """Whether an operator fits, with up to three new inputs."""
    for attempt in range(6):
        before = len(graph.steps)
        try:
            if attempt % 2 == 0 and len(graph.inputs) < 3:
                graph.new_input()
            entry.function(graph, entry.op_type)
        except Rejected:
            continue
        if len(graph.steps) > before:
            return True
    return False
