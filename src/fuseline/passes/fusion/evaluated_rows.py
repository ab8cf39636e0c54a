"""Rows that fit no scratch: what lies in them is evaluated by each of its readers instead.

    max(r) ──> exp(r, c) ──> sum(r)                for r: the row c is read three times, exp(r, c) is evaluated for
                   └───────> div(r, c)             the sum and for the quotient, and stored nowhere

The rows must be all that readers need: what is evaluated reduces nothing, does not leave the group, and reads rows from
outside, values of a whole row, or others of its kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fuseline.ir.costs import MachineCosts, assumed_size
from fuseline.ir.dim import mul, product, upper_bound
from fuseline.ir.element_types import element_bytes
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import Node


def with_rows_evaluated(group: Group) -> Group | None:
    """The group with its rows read in place; None where there are none that may be."""
    rows = set(_rows(group))
    if not rows:
        return None
    grid_loop_of = {node: loops for node, loops in group.grid_loop_of.items() if node not in rows}
    return replace(group.plain, inlined=group.inlined | rows, grid_loop_of=grid_loop_of)


def evaluation_ns(group: Group, before: Group, costs: MachineCosts) -> float:
    """How much longer the members of `group` that are read in place take than in `before`, which keeps them,
    nanoseconds of one thread: arithmetic in vectors, less what their values take to and from memory where they may lie
    in no cache."""
    again = [node for node in group.members if node in group.inlined and node not in before.inlined]
    times, total = dict[Node, int](), 0.0
    for node in reversed(again):
        readers = {read.consumer for read in node.readers if read.consumer in group.member_set}
        times[node] = sum(times.get(reader, 1) for reader in readers)
        elements = assumed_size(product(node.loops))
        total += 2 * (times[node] - 1) * elements * node.operations / costs.flops_per_ns
        if times[node] > 1:
            total -= _beside_caches_ns(node, costs)
    return max(total, 0.0)


def _beside_caches_ns(node: Node, costs: MachineCosts) -> float:
    """What it takes longer than through a cache to store the values of `node` and load them again."""
    size = mul(product(node.loops), sum(element_bytes(result) for result in node.op.results))
    rate = costs.intermediate_bytes_per_ns(upper_bound(size))
    return 2 * assumed_size(size) * (1 / rate - 1 / costs.stored_bytes_per_ns)


def _rows(group: Group) -> Iterator[Node]:
    """The members whose values would lie in scratch, row by row, and could be evaluated where they are read; and those
    between the rows that are read from outside and them."""
    results, found = set(group.results()), set[Node]()
    for node in group.members:
        if node in group.inlined or node.reduces or not node.fusable or not _has_row(group, node):
            continue
        made = [read.producer for read in node.reads if read.producer in group.member_set]
        leaves = any(result in results for result in node.op.results)
        known = all(one in found or one in group.inlined or not _has_row(group, one) for one in made if one is not None)
        if known and not leaves and any(read.consumer in group.member_set for read in node.readers):
            found.add(node)
            yield node


def _has_row(group: Group, node: Node) -> bool:
    """Whether a member has a value for each element of a row."""
    inner = (loop for loop in group.inner(node) if node.iterators[loop] == "parallel")
    return product(node.loops[loop] for loop in inner) != 1
