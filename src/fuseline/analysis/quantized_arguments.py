"""What is made of an argument of the program alone by rounding it to integers, dequantised again or not: a few
operations that a reader may do where it reads the argument."""

from __future__ import annotations

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.cost import operations
from fuseline.analysis.stored_integers import STORED_BITS
from fuseline.analysis.structured import Kind, StructuredOp, body_ops, is_generic, kind
from fuseline.analysis.views import base_of
from fuseline.ir.build import element_of

MOST_OPERATIONS = 24
"""Of all that is done to an element: one that is rounded, kept in range, and dequantised again takes half of that."""

LONGEST = 4
"""Ops of a chain: two that quantise and dequantise, and as many that compute beside them."""

_ROUNDINGS = (arith.FPToSIOp, arith.FPToUIOp)


def quantizes_argument(op: Operation) -> bool:
    """Whether `op` makes an element of its result from the one there of an argument, or of what quantises it."""
    chain = chain_of(op)
    rounds = any(isinstance(inner, _ROUNDINGS) for link in chain for inner in body_ops(link))
    return rounds and sum(map(operations, chain)) <= MOST_OPERATIONS


def chain_of(op: Operation) -> list[linalg.ops.GenericOp]:
    """`op` and the elementwise ops before it, each the only tensor of the next, back to an argument; empty where it is
    no such chain."""
    found, base = _chain_and_base(op)
    return [] if isinstance(base, OpResult) else found


def computes_of_cut_integers(op: Operation) -> bool:
    """Whether `op` makes an element of its result, by a few operations, from the one there of a slice of stored
    integers."""
    found, base = _chain_and_base(op)
    if not found or not isinstance(base, OpResult) or not isinstance(base.op, tensor.ExtractSliceOp):
        return False
    return element_of(base) == IntegerType(STORED_BITS) and sum(map(operations, found)) <= MOST_OPERATIONS


def _chain_and_base(op: Operation) -> tuple[list[linalg.ops.GenericOp], SSAValue | None]:
    """`op` and up to `LONGEST` elementwise ops before it, each the only tensor of the next, and what the first
    reads."""
    found: list[linalg.ops.GenericOp] = []
    base = None
    while is_generic(op) and (read := _only_tensor(op)) is not None and len(found) < LONGEST:
        found.append(op)
        base = base_of(read)
        if not isinstance(base, OpResult):
            break
        op = base.op
    return found, base


def _only_tensor(op: Operation) -> SSAValue | None:
    """The one tensor that an elementwise op reads."""
    if kind(op) is not Kind.ELEMENTWISE or not is_generic(op) or len(op.results) != 1:
        return None
    read = [value for value in StructuredOp(op).inputs if isinstance(value.type, TensorType)]
    return read[0] if len(read) == 1 else None
