"""Small elementwise values made of arguments that large ops read again and again: to make one takes less than to launch
a dispatch for it.

    v ──> exp ──> tanh ──┬─> mul(r, c)
                         └─> add(b, r, c)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.cost import num_bytes, operations
from fuseline.analysis.made_ahead import MOST_BYTES, REPEATS
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import FREE, HEAVY, Kind, StructuredOp, is_generic, kind, tensor_operands
from fuseline.analysis.views import base_of
from fuseline.ir.costs import MachineCosts, assumed_size
from fuseline.ir.dim import product, upper_bound
from fuseline.ir.fast.direct import result_of, users_of_value


@dataclass(frozen=True)
class SmallChains:
    """Asked about the ops of one function on a machine with these costs."""

    costs: MachineCosts
    threads: int
    shapes: ShapeAnalysis

    def makes(self, op: Operation) -> bool:
        """Whether `op` makes such a value, for large readers alone, maybe through others of its kind."""
        return self._is_small(op) and self._feeds_large(op)

    def _is_small(self, op: Operation) -> bool:
        if kind(op) is not Kind.ELEMENTWISE or len(op.results) != 1:
            return False
        size = upper_bound(num_bytes(result_of(op), self.shapes))
        work = self._ns(op)
        return size is not None and size <= MOST_BYTES and work is not None and work <= self.costs.launch_ns

    def _ns(self, op: Operation) -> float | None:
        """What it takes to make the result of arguments, nanoseconds of one thread; None where something else is needed
        for that."""
        points = assumed_size(product(self.shapes.dims(result_of(op))))
        total = points * operations(op) * self.costs.operation_ns
        for source in _made(tensor_operands(op)):
            below = self._ns(source) if kind(source) is Kind.ELEMENTWISE and total <= self.costs.launch_ns else None
            if below is None:
                return None
            total += below
        return total

    def _feeds_large(self, op: Operation) -> bool:
        readers = list(users_of_value(result_of(op)))
        return bool(readers) and all(self._is_large(op, reader) or self.makes(reader) for reader in readers)

    def _is_large(self, op: Operation, reader: Operation) -> bool:
        """Whether `reader` reads each element of `op` so often that making it ahead is nothing beside."""
        if not is_generic(reader) or kind(reader) in HEAVY:
            return False
        mine = assumed_size(product(self.shapes.dims(result_of(op))))
        return assumed_size(product(StructuredOp(reader).loops(self.shapes))) >= REPEATS * self.threads * mine


def _made(values: Iterable[SSAValue]) -> Iterable[Operation]:
    """The ops that make those of `values` that are no arguments."""
    bases = (base_of(value) for value in values)
    return [base.op for base in bases if isinstance(base, OpResult) and kind(base.op) not in FREE]
