"""Adjacent loops that appear side by side wherever they appear, in an op and in all that it exchanges tensors with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects import func, linalg, tensor
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.moves import groups_of
from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.passes.layout.rewriting.free_reshapes import is_free
from fuseline.passes.layout.rewriting.loops import can_collapse
from fuseline.passes.layout.rewriting.permutation import users_of
from fuseline.passes.layout.rewriting.reshapes import is_reshape
from fuseline.passes.layout.rewriting.scope import Scope


class LoopsTogether:
    """Which pairs of loops `(l, l + 1)` of the generics `ops` can be one loop, so that no reshape is left between any
    two of them."""

    def __init__(self, scope: Scope, ops: Iterable[linalg.ops.GenericOp]) -> None:
        self.views = {op: StructuredOp(op) for op in ops}
        self.pairs = {
            op: {loop for loop in range(view.rank - 1) if can_collapse(scope, view, [loop, loop + 1])}
            for op, view in self.views.items()
        }
        waiting = list(self.views)
        while waiting:
            op = waiting.pop()
            refused = {loop for loop in self.pairs[op] if not self._agreed(op, loop)}
            if refused:
                self.pairs[op] -= refused
                waiting += [*self._neighbours(op), op]

    def groups(self, op: linalg.ops.GenericOp) -> list[list[int]]:
        """The runs of loops of `op` that become one each."""
        runs: list[list[int]] = []
        for loop in sorted(self.pairs[op]):
            if runs and runs[-1][-1] == loop:
                runs[-1].append(loop + 1)
            else:
                runs.append([loop, loop + 1])
        return runs

    def _neighbours(self, op: linalg.ops.GenericOp) -> Iterator[linalg.ops.GenericOp]:
        view = self.views[op]
        for value in (*view.inputs, *view.outputs, *op.results):
            around = [*users_of(value), *([value.op] if isinstance(value, OpResult) else [])]
            yield from (other for other in around if is_generic(other) and other in self.views and other is not op)

    def _agreed(self, op: linalg.ops.GenericOp, loop: int) -> bool:
        """Whether whoever else sees the dimensions that the loops traverse can see them as one."""
        view = self.views[op]
        for value, map_ in zip((*view.inputs, *view.outputs), view.maps, strict=True):
            axis = _axis(map_, loop)
            if axis is not None and not is_free(value) and not self._seen_as_one(value, axis):
                return False
        results = zip(op.results, view.output_maps, strict=True)
        return all(
            axis is None or self._seen_as_one(result, axis) for result, map_ in results for axis in [_axis(map_, loop)]
        )

    def _seen_as_one(self, value: SSAValue, axis: int) -> bool:
        makers = [value.op] if isinstance(value, OpResult) else []
        return all(self._makes(op, value, axis) for op in makers) and all(
            self._reads(op, value, axis) for op in users_of(value)
        )

    def _makes(self, op: Operation, value: SSAValue, axis: int) -> bool:
        if isinstance(op, tensor.ExpandShapeOp):
            return _in_one_group(groups_of(op), axis)
        return (
            is_generic(op)
            and op in self.pairs
            and _named_by_pair(self.views[op].output_maps[op.results.index(value)], axis, self.pairs[op])
        )  # pyright: ignore[reportArgumentType]

    def _reads(self, op: Operation, value: SSAValue, axis: int) -> bool:
        if _is_returned(op):
            return True
        if isinstance(op, tensor.CollapseShapeOp):
            return _in_one_group(groups_of(op), axis)
        if not is_generic(op) or op not in self.pairs:
            return False
        view = self.views[op]
        read = [
            map_ for operand, map_ in zip((*view.inputs, *view.outputs), view.maps, strict=True) if operand is value
        ]
        return bool(read) and all(_named_by_pair(map_, axis, self.pairs[op]) for map_ in read)


def _is_returned(op: Operation) -> bool:
    """Whether an op hands a tensor to the caller and nobody else, under whatever shape."""
    return isinstance(op, func.ReturnOp) or (is_reshape(op) and all(_is_returned(user) for user in users_of(op.result)))


def _axis(map_: AffineMap, loop: int) -> int | None:
    """The dimension that `loop` traverses, None where it traverses none."""
    return next(
        (axis for axis, expr in enumerate(map_.results) if type(expr) is AffineDimExpr and expr.position == loop), None
    )


def _named_by_pair(map_: AffineMap, axis: int, pairs: set[int]) -> bool:
    """Whether the dimensions `axis` and `axis + 1` are traversed by a pair of loops that can be one."""
    first, second = map_.results[axis], map_.results[axis + 1]
    return (
        type(first) is AffineDimExpr
        and type(second) is AffineDimExpr
        and second.position == first.position + 1
        and first.position in pairs
    )


def _in_one_group(groups: Sequence[Sequence[int]], axis: int) -> bool:
    return any(axis in group and axis + 1 in group for group in groups)
