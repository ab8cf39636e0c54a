"""Values without their dimensions of size 1, and how to get back."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import IndexType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from fuseline.analysis.structured import producer_of
from fuseline.ir.build import Emitter, shape_of
from fuseline.ir.dim import Dim
from fuseline.ir.direct import result_of
from fuseline.ir.provenance import provenance
from fuseline.passes.layout.rewriting.reshapes import can_reshape, reshape
from fuseline.passes.layout.rewriting.scope import Scope


def kept_axes(shape: Sequence[int | Dim]) -> list[int]:
    """The dimensions that are not 1; the last one where all are.

    >>> kept_axes([1, 7, 1, 3]), kept_axes([1, 1]), kept_axes([])
    ([1, 3], [1], [])
    """
    kept = [axis for axis, size in enumerate(shape) if size != 1]
    return kept or list(range(len(shape)))[-1:]


def _is_size(op: Operation) -> bool:
    """Whether `op` belongs to the sizes and empty tensors that passes keep at the entry of a function."""
    return type(op) is tensor.EmptyOp or (len(op.results) == 1 and isinstance(result_of(op).type, IndexType))


class Squeezer:
    """Collapses values to their dimensions that are not 1; one collapse per value, right after it is made."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._made: dict[tuple[int, tuple[int, ...]], tuple[SSAValue, SSAValue]] = {}  # by the identity of the value, which is kept alive

    def can(self, value: SSAValue) -> bool:
        """Whether `value` can be reshaped both ways."""
        return can_reshape(self.scope, self.scope.dims(value))

    def keep(self, value: SSAValue, axes: Sequence[int]) -> SSAValue:
        """`value` with only the dimensions `axes`; all others are 1."""
        if len(axes) == len(shape_of(value)):
            return value
        key = id(value), tuple(axes)
        found = self._made.get(key)
        if found is None:
            dims = self.scope.dims(value)
            found = self._made[key] = value, reshape(self.scope, self._after(value), value, [dims[axis] for axis in axes])
        return found[1]

    def _after(self, value: SSAValue) -> Emitter:
        op = producer_of(value)
        if op is not None:
            return Emitter.after(op)
        assert type(value) is BlockArgument
        first = next(op for op in self.scope.block.ops if not _is_size(op))
        return Emitter(InsertPoint.before(first), [node for use in value.uses for node in provenance(use.operation)])

    def restore(self, at: Emitter, value: SSAValue, dims: Sequence[Dim]) -> SSAValue:
        """`value` with its dimensions of size 1 back in place."""
        return reshape(self.scope, at, value, dims)
