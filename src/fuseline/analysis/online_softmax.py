"""Softmax whose weights are summed up by a contraction, recognised by its maps and bodies: what can be evaluated in one
pass over its loop.

    m = max(x)      e = exp(x - m)      l = sum(e)      p = e / l      o = sum(p * v)
            all along one loop, the *streamed* one

A running maximum, sum and product stand for all of it: for each block of the loop

    m' = max(m, max(x))     r = exp(m - m')     l' = l r + sum(exp(x - m'))     o' = o r + sum(exp(x - m') * v)

and the division by `l` follows once, at the end. (M. Milakov, N. Gimelshein, Online normalizer calculation for softmax,
2018; T. Dao et al., FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness, 2022.)

Between `e` and the product there may be any elementwise ops that keep to it as a factor: those that multiply or divide
by what does not depend on `l` (dropout, casts) stay where they are, those that multiply or divide by `l` alone follow
the product. So may anything else that reads `l`, and what puts 0 in place of NaN: divided by their total, the weights
of a row are all NaN or none is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.softmax import Reduction, reduction_of, shifted_by_maximum
from fuseline.analysis.softmax_roles import SoftmaxRoles
from fuseline.analysis.structured import StructuredOp, is_generic, yielded
from fuseline.analysis.weighted_sums import Generic, TensorDim, Weighing, readers_of, summed_input, through, weighing_of
from fuseline.ir.build import element_of

MAXIMA: tuple[type[Operation], ...] = (arith.MaximumfOp, arith.MaxnumfOp)
"""A maximum that passes a NaN on, and one that leaves it to the exponentials: either way the sum is NaN then."""


@dataclass(frozen=True)
class OnlineSoftmax:
    """The ops of one softmax and the product behind it, each with the streamed loop among its own.

    Attributes:
        maximum, total: the reductions, from minus infinity and from 0.
        exponentials: the ops from the difference to `e`, in order.
        weights: from `e` to the product, in order.
        product: the contraction, from 0; `operand` is the input that the weights are.
        source: what the softmax is of, and its streamed dimension.
    """

    maximum: Reduction
    exponentials: tuple[Generic, ...]
    total: Reduction
    weights: tuple[Weighing, ...]
    product: Generic
    operand: int
    source: TensorDim

    @property
    def ops(self) -> tuple[Generic, ...]:
        """All of them, in order."""
        weights = [op for weighing in self.weights for op in weighing.ops]
        return (self.maximum.op, *self.exponentials, self.total.op, *weights, self.product)

    @property
    def deferred(self) -> tuple[Weighing, ...]:
        """What follows the product instead."""
        return tuple(weighing for weighing in self.weights if weighing.deferred)

    @property
    def roles(self) -> SoftmaxRoles[Operation]:
        """Which op does what."""
        return SoftmaxRoles[Operation](self.maximum.op, self.exponentials, self.total.op, self.product)

    @property
    def reductions(self) -> tuple[Generic, Generic, Generic]:
        """The ops that reduce along the streamed loop."""
        return self.maximum.op, self.total.op, self.product

    @property
    def loops(self) -> list[tuple[Generic, int]]:
        """The streamed loop of each reduction, and of the other op that reads what the softmax is of."""
        found = [(op, StructuredOp(op).reduction[0]) for op in self.reductions]
        first = StructuredOp(self.exponentials[0])
        expr = first.maps[first.inputs.index(self.source.value)].results[self.source.axis]
        assert isinstance(expr, AffineDimExpr)
        return [*found, (self.exponentials[0], expr.position)]


def online_softmaxes(ops: Iterable[Operation]) -> list[OnlineSoftmax]:
    """Every such softmax among `ops`, of which nobody else reads what has the streamed loop: it never exists as a
    whole."""
    found = (online_softmax_of(op) for op in ops)
    return [chain for chain in found if chain is not None]


def online_softmax_of(op: Operation) -> OnlineSoftmax | None:
    """The softmax whose maximum `op` is; None where it is that of none."""
    if not is_generic(op) or not StructuredOp(op).reduction:
        return None
    maximum = reduction_of(op.results[0], MAXIMA)
    if (
        maximum is None
        or maximum.start() != -inf
        or len(StructuredOp(op).reduction) != 1
        or element_of(maximum.result) not in (f32, f64)
    ):
        return None
    readers = readers_of(maximum.result)
    if len(readers) != 1:
        return None
    source = TensorDim(maximum.source, reduced_axis(maximum))
    exponentials = exponentials_of(readers[0], maximum, source)
    if exponentials is None:
        return None
    ops, e = exponentials
    total = total_of(e)
    if total is None:
        return None
    return _with_product(maximum, ops, total, e, source)


def reduced_axis(reduction: Reduction) -> int:
    """The dimension of the operand that is reduced."""
    view = StructuredOp(reduction.op)
    return view.maps[0].results.index(AffineDimExpr(view.reduction[0]))


# e = exp(x - m) -------------------------------------------------------------------------------------------------------


def exponentials_of(op: Generic, maximum: Reduction, source: TensorDim) -> tuple[tuple[Generic, ...], TensorDim] | None:
    """The ops from `x - m` to its exponential, and where the streamed loop is in the latter."""
    if len(op.results) != 1 or StructuredOp(op).reduction:
        return None
    (made,) = yielded(op)
    inner = made.op if isinstance(made, OpResult) else None
    dim = through(op, source)
    if dim is None:
        return None
    if isinstance(inner, math.ExpOp):
        return ((op,), dim) if _is_shift(op, inner.operands[0], maximum) else None
    readers = readers_of(op.results[0])
    if not _is_shift(op, made, maximum) or len(readers) != 1 or not _only_exponential(readers[0]):
        return None
    dim = through(readers[0], dim)
    return ((op, readers[0]), dim) if dim is not None else None


def _is_shift(op: Generic, argument: SSAValue, maximum: Reduction) -> bool:
    found = shifted_by_maximum(op, argument)
    return found is not None and found.op is maximum.op


def _only_exponential(op: Generic) -> bool:
    if len(op.results) != 1 or len(op.inputs) != 1 or StructuredOp(op).reduction:
        return False
    (made,) = yielded(op)
    return (
        isinstance(made, OpResult) and isinstance(made.op, math.ExpOp) and made.op.operands[0] is op.body.block.args[0]
    )


# l = sum(e), o = sum(p v) ---------------------------------------------------------------------------------------------


def total_of(e: TensorDim) -> Reduction | None:
    """The sum of `e` along the streamed loop alone, from 0."""
    for op in readers_of(e.value):
        found = (
            reduction_of(op.results[0], (arith.AddfOp,))
            if StructuredOp(op).reduction and len(op.results) == 1
            else None
        )
        if (
            found is not None
            and found.source is e.value
            and found.start() == 0
            and len(StructuredOp(op).reduction) == 1
        ):
            return found if reduced_axis(found) == e.axis else None
    return None


def _with_product(
    maximum: Reduction, ops: tuple[Generic, ...], total: Reduction, e: TensorDim, source: TensorDim
) -> OnlineSoftmax | None:
    """The chain from `e` to the contraction that sums it up."""
    weights: list[Weighing] = []
    dim = e
    while True:
        others = [op for op in readers_of(dim.value) if op is not total.op]
        operand = summed_input(others[0], dim) if len(others) == 1 else None
        if operand is not None:
            return OnlineSoftmax(maximum, ops, total, tuple(weights), others[0], operand, source)
        weighing = weighing_of(others, dim, total, weights)
        if weighing is None:
            return None
        weights.append(weighing)
        dim = TensorDim(weighing.op.results[0], dim.axis)


# ops that keep to a factor --------------------------------------------------------------------------------------------


# who reads what -------------------------------------------------------------------------------------------------------
