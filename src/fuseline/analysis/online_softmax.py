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

from xdsl.dialects import arith, linalg, math, tensor
from xdsl.dialects.builtin import FloatAttr, f32, f64
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.softmax import Reduction, is_plain, matches, reduction_of, shifted_by_maximum
from fuseline.analysis.softmax_roles import SoftmaxRoles
from fuseline.analysis.structured import StructuredOp, captured, is_generic, multiply_add_operands, splat_value, yielded
from fuseline.ir.build import element_of
from fuseline.ir.reachable import reachable

Generic = linalg.ops.GenericOp

MAXIMA: tuple[type[Operation], ...] = (arith.MaximumfOp, arith.MaxnumfOp)
"""A maximum that passes a NaN on, and one that leaves it to the exponentials: either way the sum is NaN then."""

UNEQUAL_TO_ITSELF = (13, 14)
"""The predicates `une` and `uno`: of a value and itself they hold for NaN alone."""


@dataclass(frozen=True, slots=True)
class TensorDim:
    """Dimension `axis` of a tensor."""

    value: SSAValue
    axis: int


@dataclass(frozen=True, slots=True)
class Weighing:
    """An elementwise op between `e` and the product: input `operand` are the weights so far. `deferred`: what it does
    can follow the product.

    `rows` are ops that make a deferred op's factor of the total. `guard` is an op that tells where the weights are NaN;
    then `op` puts 0 there.
    """

    op: Generic
    operand: int
    deferred: bool = False
    rows: tuple[Generic, ...] = ()
    guard: Generic | None = None

    @property
    def ops(self) -> tuple[Generic, ...]:
        """All of them, in order."""
        return (*self.rows, self.op) if self.guard is None else (self.guard, self.op)


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
    place = through(op, source)
    if place is None:
        return None
    if isinstance(inner, math.ExpOp):
        return ((op,), place) if _is_shift(op, inner.operands[0], maximum) else None
    readers = readers_of(op.results[0])
    if not _is_shift(op, made, maximum) or len(readers) != 1 or not _only_exponential(readers[0]):
        return None
    place = through(readers[0], place)
    return ((op, readers[0]), place) if place is not None else None


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
    place = e
    while True:
        others = [op for op in readers_of(place.value) if op is not total.op]
        operand = summed_input(others[0], place) if len(others) == 1 else None
        if operand is not None:
            return OnlineSoftmax(maximum, ops, total, tuple(weights), others[0], operand, source)
        weighing = weighing_of(others, place, total, weights)
        if weighing is None:
            return None
        weights.append(weighing)
        place = TensorDim(weighing.op.results[0], place.axis)


def weighing_of(readers: list[Generic], place: TensorDim, total: Reduction, before: list[Weighing]) -> Weighing | None:
    """What happens next to the weights at `place`, where that leaves them a factor of the product."""
    value = place.value
    if len(readers) == 2:
        divided = bool(before) and all(weighing.deferred for weighing in before)
        return _guarded(readers, value) if divided else None
    if len(readers) != 1 or not _keeps_factor(readers[0], value):
        return None
    (op,) = readers
    operand = list(op.inputs).index(value)
    rows = _made_of(total.result, [one for one in op.inputs if one is not value])
    if total.result not in op.inputs and not rows:
        return Weighing(op, operand)
    return Weighing(op, operand, True, rows) if _of_rows(op, operand, total, place.axis) else None


def _made_of(total: SSAValue, values: Iterable[SSAValue]) -> tuple[Generic, ...]:
    """The ops that make `values` of the total, in order."""

    def readers(op: Operation) -> list[Operation]:
        return [use.operation for result in op.results for use in result.uses]

    after = set(reachable((use.operation for use in total.uses), readers))
    found: dict[Generic, None] = {}
    sources = list(values)
    while sources:
        value = sources.pop()
        if isinstance(value, OpResult) and value.op in after and is_generic(value.op) and value.op not in found:
            found[value.op] = None
            sources += value.op.operands
    return tuple(reversed(found))


def summed_input(op: Generic, place: TensorDim) -> int | None:
    """The input of a contraction from 0 that is `place`'s tensor, read plainly, where the streamed loop is all that it
    sums over. A sum of squares is none: it grows with the square of its input, and so of what is divided by later."""
    sides = multiply_add_operands(op)
    structured = StructuredOp(op)
    if sides is None or sides[0] == sides[1] or not structured.reduction or splat_value(structured.outputs[0]) != 0:
        return None
    operand = next((side for side in sides if structured.inputs[side] is place.value), None)
    if operand is None or list(structured.inputs).count(place.value) != 1 or not is_plain(structured.maps[operand]):
        return None
    expr = structured.maps[operand].results[place.axis]
    return operand if structured.reduction == (_position(expr),) else None


def _position(expr: object) -> int | None:
    return expr.position if isinstance(expr, AffineDimExpr) else None


def _of_rows(op: Generic, operand: int, total: Reduction, axis: int) -> bool:
    """Whether all that an op reads beside its weights, the total in their own rows among it, is the same along the
    streamed loop."""
    structured = StructuredOp(op)
    whole = structured.maps[operand]
    streamed = whole.results[axis]
    for position, (value, map_) in enumerate(zip(structured.inputs, structured.input_maps, strict=True)):
        if value is total.result and not matches(total, whole, map_):
            return False
        if position != operand and (streamed in map_.results or not is_plain(map_)):
            return False
    return not captured(op)


# ops that keep to a factor --------------------------------------------------------------------------------------------


def _keeps_factor(op: Generic, value: SSAValue) -> bool:
    """Whether an all-parallel op makes of `value`, point by point, something that grows with it: of a multiple the
    multiple."""
    structured = StructuredOp(op)
    if len(op.results) != 1 or structured.reduction or list(structured.inputs).count(value) != 1:
        return False
    position = structured.inputs.index(value)
    map_ = structured.maps[position]
    return (
        is_plain(map_)
        and map_ == structured.output_maps[0]
        and _homogeneous(yielded(op)[0], op.body.block.args[position])
    )


def _guarded(readers: list[Generic], value: SSAValue) -> Weighing | None:
    """`select(isnan(p), 0, p)` of weights divided by their total: of which all in a row are NaN, or none."""
    guard, op = readers if readers[0].results[0] in readers[1].inputs else (readers[1], readers[0])
    if (
        not _tells_nan(guard)
        or readers_of(guard.results[0]) != [op]
        or len(op.inputs) != 2
        or value not in op.inputs
        or len(op.results) != 1
    ):
        return None
    (made,) = yielded(op)
    operand = list(op.inputs).index(value)
    flag, weight = op.body.block.args[1 - operand], op.body.block.args[operand]
    if not isinstance(made, OpResult) or not isinstance(made.op, arith.SelectOp) or not _is_pointwise(op):
        return None
    chosen = made.op.cond is flag and _is_zero(made.op.lhs) and made.op.rhs is weight
    return Weighing(op, operand, True, guard=guard) if chosen else None


def _tells_nan(op: Generic) -> bool:
    """Whether an op compares each element of its only input with itself, for being unordered."""
    if len(op.inputs) != 1 or len(op.results) != 1 or not _is_pointwise(op):
        return False
    (made,) = yielded(op)
    if (
        not isinstance(made, OpResult)
        or not isinstance(made.op, arith.CmpfOp)
        or made.op.predicate.value.data not in UNEQUAL_TO_ITSELF
    ):
        return False
    return all(operand is op.body.block.args[0] for operand in made.op.operands)


def _is_pointwise(op: Generic) -> bool:
    """Whether an all-parallel op makes each element from those at the same place."""
    structured = StructuredOp(op)
    maps = set(structured.maps)
    return not structured.reduction and len(maps) == 1 and is_plain(maps.pop())


def _is_zero(value: SSAValue) -> bool:
    """Whether a scalar is the constant 0."""
    if not isinstance(value, OpResult) or not isinstance(value.op, arith.ConstantOp):
        return False
    attribute = value.op.value
    return isinstance(attribute, FloatAttr) and attribute.value.data == 0.0


def _homogeneous(value: SSAValue, argument: BlockArgument) -> bool:
    """Whether a scalar of the body is the argument times something that does not depend on it."""
    if value is argument:
        return True
    if not isinstance(value, OpResult):
        return False
    inner = value.op
    if isinstance(inner, arith.NegfOp | arith.ExtFOp | arith.TruncFOp):
        return _homogeneous(inner.operands[0], argument)
    if isinstance(inner, arith.DivfOp):
        return _homogeneous(inner.lhs, argument) and not _depends(inner.rhs, argument)
    if isinstance(inner, arith.MulfOp):
        sides = (inner.lhs, inner.rhs), (inner.rhs, inner.lhs)
        return any(_homogeneous(a, argument) and not _depends(b, argument) for a, b in sides)
    return False


def _depends(value: SSAValue, argument: BlockArgument) -> bool:
    if value is argument:
        return True
    return isinstance(value, OpResult) and any(_depends(operand, argument) for operand in value.op.operands)


# who reads what -------------------------------------------------------------------------------------------------------


def readers_of(value: SSAValue) -> list[Generic]:
    """The structured ops that read a value as an input, once each; none where anything else needs its elements."""
    found: dict[Generic, None] = {}
    for use in value.uses:
        op = use.operation
        if isinstance(op, tensor.DimOp):
            continue
        if not is_generic(op) or use.index >= len(op.inputs):
            return []
        found[op] = None
    return list(found)


def through(op: Generic, place: TensorDim) -> TensorDim | None:
    """Where a dimension that an all-parallel op reads plainly is in its only result."""
    structured = StructuredOp(op)
    if place.value not in structured.inputs or len(op.results) != 1:
        return None
    expr = structured.maps[structured.inputs.index(place.value)].results[place.axis]
    made: AffineMap = structured.output_maps[0]
    if not isinstance(expr, AffineDimExpr) or not is_plain(made) or expr not in made.results:
        return None
    return TensorDim(op.results[0], made.results.index(expr))
