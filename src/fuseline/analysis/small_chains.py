"""Small elementwise values made of arguments that large ops read again and again: to make one takes less than to launch
a dispatch for it.

    v ──> exp ──> tanh ──┬─> mul(r, c)
                         └─> add(b, r, c)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.cost import num_bytes, operations
from fuseline.analysis.made_ahead import MOST_BYTES, REPEATS
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import FREE, HEAVY, Kind, StructuredOp, is_generic, kind, tensor_operands
from fuseline.analysis.views import base_of
from fuseline.ir.costs import MachineCosts, assumed_size
from fuseline.ir.dim import product, upper_bound
from fuseline.ir.fast.direct import result_of, users_of_value


class SmallChains:
    """Asked about `ops`, those of one function in order, on a machine with these costs."""

    def __init__(self, ops: Sequence[Operation], costs: MachineCosts, threads: int, shapes: ShapeAnalysis) -> None:
        self.costs, self.threads, self.shapes = costs, threads, shapes
        self.times = dict[Operation, float]()
        for op in ops:
            time = self._ns(op) if kind(op) is Kind.ELEMENTWISE and len(op.results) == 1 else None
            if time is not None:
                self.times[op] = time
        self.chosen = set[Operation]()
        for op in reversed(ops):
            if op in self.times and self._feeds_large(op):
                self.chosen.add(op)

    def makes(self, op: Operation) -> bool:
        """Whether `op` makes such a value, for large readers alone, maybe through others of its kind."""
        return op in self.chosen

    def _ns(self, op: Operation) -> float | None:
        """What it takes to make the result of arguments, nanoseconds of one thread; None where that is no small
        value."""
        size = upper_bound(num_bytes(result_of(op), self.shapes))
        before = [self.times.get(source) for source in _made(tensor_operands(op))]
        if size is None or size > MOST_BYTES or None in before:
            return None
        points = assumed_size(product(self.shapes.dims(result_of(op))))
        own = points * operations(op) * self.costs.operation_ns
        total = own + sum(time for time in before if time is not None)
        return total if total <= self.costs.launch_ns else None

    def _feeds_large(self, op: Operation) -> bool:
        readers = list(users_of_value(result_of(op)))
        return bool(readers) and all(reader in self.chosen or self._is_large(op, reader) for reader in readers)

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
