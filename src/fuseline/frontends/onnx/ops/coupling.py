"""Probabilities of several classes that fit those of all pairs of them best.

    minimise  sum over i of sum over j != i of (r[j,i] p[i] - r[i,j] p[j])^2,   sum of p = 1

T.-F. Wu, C.-J. Lin and R. C. Weng, "Probability Estimates for Multi-class Classification by Pairwise Coupling", JMLR 5
(2004), second method, algorithm 2: one coordinate after the other, until all are nearly stationary. LIBSVM stops early,
and so do onnxruntime and scikit-learn: what comes out are the numbers of that moment, so the sweeps are the same here,
and a row that is done stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce as fold
from itertools import combinations

import numpy as np
from xdsl.dialects import arith, math, tensor
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.emission import filled, result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.recurrent_slices import concat
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, view
from fuseline.ir.build import PARALLEL, REDUCTION, Body, dims_map, element_of

FLOAT32 = np.dtype(np.float32)
NEARLY_STATIONARY = 0.005
"""By how much, divided by the number of classes, a coordinate may be off."""

SWEEPS = 100
"""At most, or as many as there are classes."""

MOST_CLASSES = 16
"""Whose sweep one body holds; its length grows with their square."""

Matrix = list[list[SSAValue]]


def coupled(node: OnnxNode, shares: Tensor, classes: int) -> Tensor:
    """`[rows, classes]` from `shares` `[rows, pairs]`, pairs in the order (0, 1), (0, 2), .., (1, 2), ..: how likely
    the first of two is.

    Raises NoNativeLowering for more than MOST_CLASSES. Loops: row | sweep.
    """
    if classes > MOST_CLASSES and not node.program.ctx.evaluated:
        raise NoNativeLowering("many-classes", f"probabilities of {classes} classes")
    source, rows = node.ssa(shares), shares.dims[0]
    sweeps = node.emit.empty(mlir_element(FLOAT32), [max(SWEEPS, classes)])
    starts = [filled(node, 1 / classes, [rows], FLOAT32) for _ in range(classes)]
    maps = [dims_map(2, [1]), *(dims_map(2, [0]) for _ in starts)]

    def body(b: Body) -> list[SSAValue]:
        pairs = [
            b.op(tensor.ExtractOp, source, [s.loop_index(b, 0), s.index_constant(b, i)], element_of(source))
            for i in range(_pairs(classes))
        ]
        return _Sweep(b, _quadratic(b, pairs, classes)).of(list(b.args[1:]))

    op = node.emit.generic([sweeps], starts, maps, [PARALLEL, REDUCTION], body)
    columns = [result(value, [rows], FLOAT32) for value in op.results]
    return concat(node, [view(column, (rows, 1), [0]) for column in columns], 1)


def _pairs(classes: int) -> int:
    return classes * (classes - 1) // 2


def _quadratic(b: Body, pairs: Sequence[SSAValue], classes: int) -> Matrix:
    """The form to minimise: at (i, i) the squares of what the others have against i, at (i, j) less the product of both
    sides of the pair."""
    one = b.constant(1.0, mlir_element(FLOAT32))
    side: dict[tuple[int, int], SSAValue] = {}
    for share, (i, j) in zip(pairs, combinations(range(classes), 2), strict=True):
        side[i, j], side[j, i] = share, b.op(arith.SubfOp, one, share)
    q: dict[tuple[int, int], SSAValue] = {}
    for i, j in combinations(range(classes), 2):
        q[i, j] = q[j, i] = b.op(arith.NegfOp, b.op(arith.MulfOp, side[i, j], side[j, i]))
    for i in range(classes):
        q[i, i] = _sum(b, [b.op(arith.MulfOp, side[j, i], side[j, i]) for j in range(classes) if j != i])
    return [[q[i, j] for j in range(classes)] for i in range(classes)]


def _sum(b: Body, terms: Sequence[SSAValue]) -> SSAValue:
    return fold(lambda x, y: b.op(arith.AddfOp, x, y), terms)


class _Sweep:
    """One step along each coordinate."""

    def __init__(self, b: Body, q: Matrix) -> None:
        self.b, self.q = b, q

    def of(self, p: list[SSAValue]) -> list[SSAValue]:
        """`p` after a sweep, or as it is where it is nearly stationary."""
        b = self.b
        slopes = [_sum(b, [b.op(arith.MulfOp, c, x) for c, x in zip(row, p, strict=True)]) for row in self.q]
        value = _sum(b, [b.op(arith.MulfOp, x, slope) for x, slope in zip(p, slopes, strict=True)])
        done = self._done(slopes, value)
        new = list(p)
        for t in range(len(p)):
            new, slopes, value = self._step(t, new, slopes, value)
        return [s.select(b, done, old, x) for old, x in zip(p, new, strict=True)]

    def _done(self, slopes: Sequence[SSAValue], value: SSAValue) -> SSAValue:
        b = self.b
        errors = [b.op(math.AbsFOp, b.op(arith.SubfOp, slope, value)) for slope in slopes]
        largest = fold(lambda x, y: s.maximum(b, FLOAT32, x, y), errors)
        return s.compare(b, FLOAT32, "lt", largest, b.constant(NEARLY_STATIONARY / len(slopes), mlir_element(FLOAT32)))

    def _step(
        self, t: int, p: Sequence[SSAValue], slopes: Sequence[SSAValue], value: SSAValue
    ) -> tuple[list[SSAValue], list[SSAValue], SSAValue]:
        """Coordinate `t` to where the form is smallest, and all of them back to a sum of 1."""
        b, one = self.b, self.b.constant(1.0, mlir_element(FLOAT32))
        by = b.op(arith.DivfOp, b.op(arith.SubfOp, value, slopes[t]), self.q[t][t])
        back = b.op(arith.DivfOp, one, b.op(arith.AddfOp, one, by))
        gained = b.op(
            arith.MulfOp,
            by,
            b.op(arith.AddfOp, b.op(arith.MulfOp, by, self.q[t][t]), b.op(arith.AddfOp, slopes[t], slopes[t])),
        )
        value = b.op(arith.MulfOp, b.op(arith.MulfOp, b.op(arith.AddfOp, value, gained), back), back)
        moved = [
            b.op(arith.AddfOp, slope, b.op(arith.MulfOp, by, c)) for slope, c in zip(slopes, self.q[t], strict=True)
        ]
        shifted = [b.op(arith.AddfOp, x, by) if j == t else x for j, x in enumerate(p)]
        return (
            [b.op(arith.MulfOp, x, back) for x in shifted],
            [b.op(arith.MulfOp, slope, back) for slope in moved],
            value,
        )
