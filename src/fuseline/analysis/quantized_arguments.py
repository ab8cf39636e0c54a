"""What is made of an argument of the program alone by rounding it to integers, dequantised again or not: a few
operations that a reader may do where it reads the argument."""

from __future__ import annotations

from enum import Enum

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


class Origin(Enum):
    """What a few operations make an element of, from the one in its place."""

    ROUNDED_ARGUMENT = "an argument, which they round"
    CUT_INTEGERS = "a slice of stored integers"


def origin_of(op: Operation) -> Origin | None:
    """What `op` and the elementwise ops before it, up to `LONGEST`, each the only tensor of the next, begin with; None
    where that is neither, or they are more than a few operations."""
    chain, base = _chain_of(op)
    if base is None or sum(map(operations, chain)) > MOST_OPERATIONS:
        return None
    if isinstance(base, OpResult):
        cut = isinstance(base.op, tensor.ExtractSliceOp) and element_of(base) == IntegerType(STORED_BITS)
        return Origin.CUT_INTEGERS if cut else None
    rounds = any(isinstance(inner, _ROUNDINGS) for link in chain for inner in body_ops(link))
    return Origin.ROUNDED_ARGUMENT if rounds else None


def quantizes_argument(op: Operation) -> bool:
    """Whether `op` makes an element of its result from the one there of an argument, or of what quantises it."""
    return origin_of(op) is Origin.ROUNDED_ARGUMENT


def _chain_of(op: Operation) -> tuple[list[linalg.ops.GenericOp], SSAValue | None]:
    """The ops, the last one first, and what the first of them reads; None where there is not one."""
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
