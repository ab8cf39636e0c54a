"""Values without their dimensions of size 1, and how to get back."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import IndexType
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint

from fuseline.analysis.shapes import Dims
from fuseline.analysis.structured import producer_of
from fuseline.ir.build import Emitter
from fuseline.ir.dim import Dim
from fuseline.ir.fast.direct import erase, replace_uses, result_of, set_operands
from fuseline.ir.provenance import provenance
from fuseline.passes.layout.rewriting.reshapes import can_reshape, reshape, root_of
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
    """Collapses values to their dimensions that are not 1; one collapse per value, right after it is made.

    A value for which a core stands (itself without some dimensions of size 1) keeps its op until `close`: most readers
    want a core, so that the value is restored for those that are left only.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        # By the identity of the value, which is kept alive.
        self._made: dict[tuple[int, tuple[int, ...]], tuple[SSAValue, SSAValue]] = {}
        self._cores: dict[int, tuple[OpResult, SSAValue, Dims]] = {}
        self._replaced: dict[int, Operation] = {}

    def can(self, value: SSAValue) -> bool:
        """Whether `value` can be reshaped both ways."""
        return can_reshape(self.scope, self.scope.dims(value))

    def keep(self, value: SSAValue, axes: Sequence[int]) -> SSAValue:
        """`value` with only the dimensions `axes`; all others are 1."""
        dims = self.scope.dims(value)
        if len(axes) == len(dims):
            return value
        key = id(value), tuple(axes)
        found = self._made.get(key)
        if found is None:
            standing = self._cores.get(id(value))
            core = value if standing is None else standing[1]
            found = self._made[key] = (
                value,
                reshape(self.scope, self._after(value), core, [dims[axis] for axis in axes]),
            )
        return found[1]

    def _after(self, value: SSAValue) -> Emitter:
        op = producer_of(value)
        if op is not None:
            return Emitter.after(op)
        assert type(value) is BlockArgument
        first = next(op for op in self.scope.block.ops if not _is_size(op))
        return Emitter(InsertPoint.before(first), [node for use in value.uses for node in provenance(use.operation)])

    def stand_for(self, result: OpResult, core: SSAValue) -> None:
        """Let `core` stand for `result`, the op of which is erased by `close`."""
        dims, root = self.scope.dims(result), root_of(core)
        self._replaced[id(result.op)] = result.op
        if self.scope.dims(root) == dims:
            replace_uses(result, root)
        else:
            self._cores[id(result)] = result, core, dims

    def close(self) -> None:
        """Put the dimensions of size 1 back where they are still read, and erase what is replaced."""
        for op in self._replaced.values():
            set_operands(op, ())
        for result, core, dims in self._cores.values():
            if result.first_use is not None:
                replace_uses(result, reshape(self.scope, Emitter.before(result.op), core, dims))
        for op in self._replaced.values():
            erase(op)
