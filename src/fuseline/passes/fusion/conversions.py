"""Producers that only convert elements from one type to another: work that a load does on the way."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects import arith
from xdsl.ir import Operation

from fuseline.analysis.structured import Kind, body_ops, is_generic
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import Node

WIDENINGS = frozenset({arith.ExtFOp, arith.ExtSIOp, arith.ExtUIOp})
"""What a load does on the way: half the bytes or fewer, and an instruction that the wide load would have been."""

CONVERSIONS = WIDENINGS | {arith.SIToFPOp, arith.UIToFPOp, arith.TruncFOp}
"""What a root does where it packs an operand."""

OF_INDICES = frozenset({arith.TruncIOp, arith.ExtSIOp, arith.ExtUIOp, arith.IndexCastOp})
"""What the load of an element does on the way: integers of one width as integers of another."""


def only_converts(producer: Group, conversions: Collection[type[Operation]]) -> bool:
    """Whether all that a producer does is to convert elements from one type to another, by these."""
    return all(is_conversion(node, conversions) for node in producer.members)


def is_conversion(node: Node, conversions: Collection[type[Operation]]) -> bool:
    """Whether an op only converts elements, by these."""
    return node.kind is Kind.ELEMENTWISE and converts(node.op, conversions)


def converts(op: Operation, conversions: Collection[type[Operation]]) -> bool:
    """Whether the body of an elementwise op has nothing but `conversions`."""
    return is_generic(op) and all(type(inner) in conversions for inner in body_ops(op))
