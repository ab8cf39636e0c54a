"""How long the chains of operations are that a dispatch computes at each of its points.

    x ── mul ── add ── round ── max ── min ── store        0 + 1 + 2 + 3 + 4 operations come before one of these

An operation waits for those before it, and takes a place among the few dozen that a core holds ready meanwhile: the
longer the chains, the fewer points are under way at once. So what it costs is counted by what it follows, and a chain
costs as its square does (196x64x1024 with 9 sums and products behind it: 5.5 cycles a vector, with 29 of them 24).
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith, linalg, math
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.cost import TRANSCENDENTAL_OPS, is_function, is_operation
from fuseline.analysis.stored_integers import constant_of
from fuseline.analysis.structured import body_ops, yielded
from fuseline.ir.fast.direct import operands_of

DIVISION = 4
"""A quotient or a square root of floats takes as long as so many others that follow one another."""

PRODUCTS = 2
"""A quotient by a known number may be as many products (`targets/cpu/emit/rounded_quotients.py`)."""


def chain_of(op: linalg.ops.GenericOp, before: Mapping[SSAValue, int]) -> tuple[int, list[int]]:
    """How many operations those of a body follow, added up, and how many are behind each result; `before`: behind the
    tensors that it reads, 0 for those that are not there."""
    arguments = op.body.block.args
    depths: dict[SSAValue, int] = {
        argument: before.get(operand, 0) for argument, operand in zip(arguments, operands_of(op), strict=True)
    }
    followed = 0
    for inner in body_ops(op):
        depth = max((depths.get(value, 0) for value in operands_of(inner)), default=0)
        if is_operation(inner):
            followed += depth * (TRANSCENDENTAL_OPS if is_function(inner) else 1)
            depth += _length(inner)
        depths.update((value, depth) for value in inner.results)
    return followed, [depths.get(value, 0) for value in yielded(op)]


def _length(op: Operation) -> int:
    if is_function(op):
        return TRANSCENDENTAL_OPS
    if isinstance(op, arith.DivfOp):
        return DIVISION if constant_of(op.rhs) is None else PRODUCTS
    return DIVISION if isinstance(op, math.SqrtOp) else 1
