"""Order in a graph of nodes that read each other: what lies on cycles, and an order to run in."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Set
from typing import TypeVar

T = TypeVar("T")


def components(sources: Mapping[T, Set[T]]) -> list[list[T]]:
    """The sets of nodes that all need each other, by what each reads (Tarjan's strongly connected components)."""
    found: list[list[T]] = []
    number: dict[T, int] = {}
    low: dict[T, int] = {}
    stack: list[T] = []
    on_stack: set[T] = set()
    for start in sources:
        if start in number:
            continue
        work = [(start, iter(sources[start]))]
        number[start] = low[start] = len(number)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, rest = work[-1]
            following = next((other for other in rest if other not in number or other in on_stack), None)
            if following is None:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[node])
                if low[node] == number[node]:
                    found.append(_popped(stack, on_stack, node))
            elif following in number:
                low[node] = min(low[node], number[following])
            else:
                number[following] = low[following] = len(number)
                stack.append(following)
                on_stack.add(following)
                work.append((following, iter(sources[following])))
    return found


def _popped(stack: list[T], on_stack: set[T], last: T) -> list[T]:
    component: list[T] = []
    while True:
        component.append(stack.pop())
        on_stack.discard(component[-1])
        if component[-1] == last:
            return component


def in_order(sources: Mapping[T, Set[T]], place: Mapping[T, int]) -> list[T]:
    """The nodes so that each comes behind what it reads, and among those that may run the one with the least
    `place` first. There must be no cycle."""
    readers: dict[T, list[T]] = {node: [] for node in sources}
    for node, needed in sources.items():
        for other in needed:
            readers[other].append(node)
    missing = {node: len(needed) for node, needed in sources.items()}
    nodes = list(sources)
    at = {node: number for number, node in enumerate(nodes)}
    ready = [(place[node], at[node]) for node in nodes if not missing[node]]
    heapq.heapify(ready)
    ordered: list[T] = []
    while ready:
        node = nodes[heapq.heappop(ready)[1]]
        ordered.append(node)
        for reader in readers[node]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, (place[reader], at[reader]))
    assert len(ordered) == len(nodes), "a cycle"
    return ordered
