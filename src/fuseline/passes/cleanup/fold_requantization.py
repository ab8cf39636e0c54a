"""fold-requantization: integers that are dequantised and quantised again to the same numbers stay as they are.

    quantized(dequantized(q))               =>      q          where all 256 numbers come back
    quantized(moved(dequantized(q)))        =>      moved(q)

Operators that only move or choose elements (a resize, a border, a maximum, a concat) are written so by tools that put a
pair around every operator, mostly with the scale of what they read; in between, elements may be moved (reshaped,
transposed, sliced: attention is full of it). Whether a pair does nothing is found by computing
it for every number of the type, so what it is written as does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import linalg
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.analysis.indexing_maps import is_identity, loops_of
from fuseline.analysis.stored_integers import STORED_BITS
from fuseline.analysis.structured import Kind, StructuredOp, captured, is_generic, kind, producer_of
from fuseline.ir.build import Emitter, element_of
from fuseline.ir.dim import Dim
from fuseline.ir.fast.direct import body_of, ops_of, replace_uses, result_of
from fuseline.passes.cleanup.moved_elements import moved, moves_behind
from fuseline.passes.cleanup.number_tables import all_numbers, numbers_behind
from fuseline.passes.layout.rewriting.generics import index_ops
from fuseline.passes.layout.rewriting.reshapes import can_reshape, reshape
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass

LONGEST = 3
"""Ops of a round trip: one that quantises, and what dequantises in one step or centres and scales in two."""


@dataclass(frozen=True)
class FoldRequantizationPass(ScopedPass):
    """Has no options."""

    name = "fold-requantization"

    def rewrite(self, scope: Scope) -> None:
        """In order, so that a chain of pairs goes as one."""
        found = False
        for op in ops_of(scope.block):
            round_trip = _round_trip(op) if is_generic(op) else None
            if round_trip is not None and round_trip.is_undone():
                replace_uses(result_of(op), round_trip.integers(scope, op))
                found = True
        if found:
            scope.sweep()


@dataclass(frozen=True, slots=True)
class _RoundTrip:
    """Elementwise ops, the first of which reads stored integers, and before each but the first what moves elements to
    it."""

    ops: list[linalg.ops.GenericOp]
    moves: list[list[Operation]]

    def is_undone(self) -> bool:
        """Whether every number comes back."""
        return np.array_equal(numbers_behind(self.ops), all_numbers())

    def integers(self, scope: Scope, before: Operation) -> SSAValue:
        """What the first reads, moved to where the last has it, before an op."""
        value = _placed(scope, self.ops[0], self.ops[0].inputs[0], before)
        for moves, op in zip(self.moves, self.ops[1:], strict=True):
            value = _placed(scope, op, moved(value, moves, before), before)
        return value


def _placed(scope: Scope, op: linalg.ops.GenericOp, value: SSAValue, before: Operation) -> SSAValue:
    """The elements of `value` where `op` has what it computes of them."""
    (read,) = StructuredOp(op).input_maps
    if is_identity(read):
        return value
    at, dims = Emitter.before(before), scope.dims(op.outputs[0])
    if can_reshape(scope, dims) and _puts_in_units(read, scope.dims(value), dims):
        return reshape(scope, at, value, dims)
    return at.elementwise([value], at.empty_like(op.outputs[0], element_of(value)), lambda b: b.args[0], [read])


def _puts_in_units(read: AffineMap, before: Sequence[Dim], after: Sequence[Dim]) -> bool:
    """Whether what is read by a map of plain loops is the same elements in order, with other dimensions of size 1."""
    loops = [loop for loop in loops_of(read.results) if loop is not None]
    moving = [[size for size in sizes if size != 1] for sizes in (before, after)]
    return loops == sorted(set(loops)) and moving[0] == moving[1]


def _round_trip(op: linalg.ops.GenericOp) -> _RoundTrip | None:
    """`op`, and what makes the elements that it reads, as far back as where they are of the type of its result: stored
    integers. All go from element to element."""
    element = element_of(result_of(op))
    if not isinstance(element, IntegerType) or element.width.data != STORED_BITS:
        return None
    ops, between = list[linalg.ops.GenericOp](), list[list[Operation]]()
    at: Operation | None = op
    while len(ops) < LONGEST and is_generic(at) and _is_closed(at):
        ops.insert(0, at)
        if len(ops) > 1 and element_of(at.inputs[0]) == element:
            return _RoundTrip(ops, between)
        value, moves = moves_behind(at.inputs[0])
        between.insert(0, moves)
        at = producer_of(value)
    return None


def _is_closed(op: linalg.ops.GenericOp) -> bool:
    """Whether `op` makes each element of one by what stands in its body alone."""
    if kind(op) is not Kind.ELEMENTWISE or len(op.inputs) != 1 or len(op.results) != 1:
        return False
    in_order = is_identity(StructuredOp(op).output_maps[0])
    return in_order and not captured(op) and not index_ops(op) and not list(body_of(op).args[1].uses)


EXPORT = FoldRequantizationPass
