"""Borders of dimensions whose size only the run knows, by what their indices are at many sizes.

    min(max(i - 1, 0), size - 1)       =>      border "edge" around i - 1, of any size

Such an index is made of linear pieces in the iteration and the size. Where they meet, and where they meet a border's
own, lie lines with small whole coefficients: beyond the largest size at which two of them cross nothing new happens, so
that an index that is a border's at all sizes up to there, and a few beyond, is one at any. What one turn does not bring
back is the nearest element, as `emit/folded_address.py` has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.border_modes import BORDER_MODES, BorderMode, folded
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.evaluation.program import Program, Scope, run_op
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim

LARGEST_SIZE = 512
"""Sizes beyond this are not computed: of borders of many elements, which are left as they are."""

MARGIN = 8
"""Sizes beyond the last crossing that are looked at, too."""

FEWEST_PIECES = 4
"""Coefficients, and parts that are numbers, of what a border itself compares: those of a reflection of one element."""

_SUMS = (arith.AddiOp, arith.SubiOp)
_CHOICES = (arith.MinSIOp, arith.MaxSIOp, arith.SelectOp, arith.CmpiOp)
_LINEAR = (*_SUMS, *_CHOICES, arith.IndexCastOp, arith.ConstantOp, linalg.ops.IndexOp)


def border_of_any_size(
    index: SSAValue, extents: Sequence[Dim], size: Dim, shapes: ShapeAnalysis
) -> tuple[int, int, BorderMode | None] | None:
    """The loop, the distance and the mode of the border that an index is around a dimension of `size`; None where it is
    none."""
    found = _Pieces(shapes, size)
    if not found.collect(index) or len(found.loops) != 1:
        return None
    (loop,) = found.loops
    beyond, largest = d.sub(extents[loop], size), found.largest_size
    if not isinstance(beyond, int) or largest > LARGEST_SIZE:
        return None
    least = max(1, 1 - beyond, d.lower_bound(size) or 1)
    sizes = np.arange(least, max(largest, least) + 1 + MARGIN)
    each = np.repeat(sizes, sizes + beyond)
    positions = np.concatenate([np.arange(one + beyond) for one in sizes.tolist()])
    mode = _mode(positions, each, found.values(index, loop, len(extents), positions, each))
    return (loop, *mode) if mode is not None else None


def _mode(
    positions: NDArray[np.int64], sizes: NDArray[np.int64], found: NDArray[np.int64]
) -> tuple[int, BorderMode | None] | None:
    lows, counts = np.unique(positions - found, return_counts=True)
    low = int(lows[np.argmax(counts)])
    at = positions - low
    if np.array_equal(found, at) and at.min() >= 0 and bool((at < sizes).all()):
        return low, None
    last = sizes - 1
    for mode in BORDER_MODES:
        turned: Any = folded(at, sizes, mode)  # pyright: ignore[reportArgumentType]
        if np.array_equal(found, np.maximum(np.minimum(turned, last), 0)):
            return low, mode
    return None


@dataclass(frozen=True, slots=True)
class _Reach:
    """The largest coefficient of a linear piece, and its largest part that is a number."""

    steps: int
    number: int

    def plus(self, other: _Reach) -> _Reach:
        return _Reach(self.steps + other.steps, self.number + other.number)


class _Pieces:
    """The arithmetic behind an index, operands first; what it starts from: `loops`, sizes, numbers."""

    def __init__(self, shapes: ShapeAnalysis, size: Dim) -> None:
        self.shapes, self.size = shapes, size
        self.ops: dict[Operation, None] = {}
        self.loops: set[int] = set()
        self.leaves: dict[SSAValue, Dim] = {}
        self._reach: dict[SSAValue, _Reach] = {}
        self._most = _Reach(FEWEST_PIECES, FEWEST_PIECES)

    @property
    def largest_size(self) -> int:
        """Beyond which no two of the lines cross at which pieces meet."""
        return 2 * self._most.steps * self._most.number

    def collect(self, value: SSAValue) -> bool:
        """Whether a value is made of linear pieces of one loop and the size."""
        if value in self._reach:
            return True
        op = value.op if isinstance(value, OpResult) else None
        if not isinstance(op, _LINEAR):
            return self._is_size(value)
        if not all([self.collect(operand) for operand in op.operands]):
            return False
        self.ops[op] = None
        self._reach[value] = self._of(op)
        return True

    def _is_size(self, value: SSAValue) -> bool:
        """Whether a value from outside is a number, or as far from the size as one."""
        whole = self.shapes.index(value) if _is_index(value) else None
        apart = d.sub(whole, self.size) if whole is not None else None
        number = whole if isinstance(whole, int) else apart
        if whole is None or not isinstance(number, int):
            return False
        self.leaves[value] = whole
        self._reach[value] = _Reach(int(not isinstance(whole, int)), abs(number))
        return True

    def _of(self, op: Operation) -> _Reach:
        if isinstance(op, linalg.ops.IndexOp):
            self.loops.add(op.dim.value.data)
            return _Reach(1, 0)
        if isinstance(op, arith.ConstantOp):
            number = op.value.value.data if isinstance(op.value, IntegerAttr) else LARGEST_SIZE
            return _Reach(0, abs(int(number)))
        found = [self._reach[operand] for operand in op.operands]
        together = found[-1].plus(found[-2]) if len(found) > 1 else found[0]
        self._most = _Reach(max(self._most.steps, together.steps), max(self._most.number, together.number))
        if isinstance(op, _SUMS):
            return together
        return _Reach(max(one.steps for one in found), max(one.number for one in found))

    def values(
        self, index: SSAValue, loop: int, rank: int, positions: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The index at each of `positions`, of a dimension of each of `sizes`."""
        indices = [positions if i == loop else np.zeros(1, np.int64) for i in range(rank)]
        scope = Scope(Program(), indices=indices)
        for value, whole in self.leaves.items():
            scope.bind([value], [np.asarray(_at(whole, self.size, sizes))])
        for op in self.ops:
            run_op(op, scope)
        return np.broadcast_to(np.asarray(scope[index]), positions.shape)


def _at(whole: Dim, size: Dim, sizes: NDArray[np.int64]) -> Any:
    """A number, or what is as far from the size as one, at each of `sizes`."""
    if isinstance(whole, int):
        return np.int64(whole)
    apart = d.sub(whole, size)
    assert isinstance(apart, int), "nothing else is collected"
    return sizes + apart


def _is_index(value: SSAValue) -> bool:
    return isinstance(value.type, IndexType)
