"""Merges with a concat that others come before: what makes its parts is to end in them, each dispatch with all that is
computed of its root, so that it can write its part in place; and what reads the concat is to go to where it is read.

    conv a ──> quantize ──> widen ──┐
                                    ├─> concat ──> dequantize ──> pool
    conv b ──> quantize ──> widen ──┘

By the bytes that they save, `widen` and `dequantize` would be the concat's first, a dispatch that reads all parts once
more (quantised networks with concats, of which few have so many bytes as what is computed between: Inception 82
dispatches, 53 as it is; DenseNet 177 and 123).
"""

from __future__ import annotations

from fuseline.analysis.structured import Kind
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import Node

MOST_BEHIND = 16
"""Elementwise nodes that are followed back to a root."""


def waits_for_others(producer: Group, consumer: Group) -> bool:
    """Whether a merge with a concat of what roots make, which nothing is merged with yet, waits: of what is still to go
    to the root that it follows; and of what reads the concat, unless it reduces (the rows of a dense block, of which
    the last part may be made on the way)."""
    if _joins_what_roots_make(consumer) and not producer.heavy:
        return True
    return _joins_what_roots_make(producer) and not consumer.reduces


def _joins_what_roots_make(group: Group) -> bool:
    """Whether a group is a concat of parts that a root each makes: slices of one value are no such."""
    if any(node.kind is not Kind.CONCAT for node in group.members):
        return False
    makers = [read.producer for read in group.outside_reads()]
    return len(set(makers)) == len(makers) and all(node is not None and _follows_root(node) for node in makers)


def _follows_root(node: Node) -> bool:
    """Whether a node is a root, or is computed of one element by element."""
    behind: Node | None = node
    for _ in range(MOST_BEHIND):
        if behind is None or behind.heavy:
            return behind is not None
        first = next((read.producer for read in behind.reads if read.producer is not None), None)
        behind = first if behind.kind is Kind.ELEMENTWISE else None
    return False
