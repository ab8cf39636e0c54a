"""What steps lead to: each thing once, and nothing is asked that the caller did not take."""

from __future__ import annotations

from itertools import islice

from fuseline.ir.reachable import reachable
from tests.draws import RNG


def test_every_node_of_a_random_graph_once() -> None:
    edges = {n: [int(m) for m in RNG.integers(0, 30, RNG.integers(0, 4))] for n in range(30)}
    start = [int(n) for n in RNG.integers(0, 30, 2)]
    expected = set(start)
    while more := {m for n in expected for m in edges[n]} - expected:
        expected |= more
    found = list(reachable(start, edges.__getitem__))
    assert set(found) == expected and len(found) == len(expected)


def test_steps_are_asked_as_they_are_needed() -> None:
    assert list(islice(reachable([0], lambda n: [n + 1]), 5)) == [0, 1, 2, 3, 4], "an endless path"
    assert list(reachable([], lambda _: [1])) == []
