"""Weighted sums of a softmax that streams: the product with its weights, what keeps to them as a factor on the way, and
the choice that a model makes for rows without a weight."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.softmax import Reduction, is_plain, matches
from fuseline.analysis.structured import StructuredOp, captured, is_generic, multiply_add_operands, splat_value, yielded
from fuseline.ir.reachable import reachable

Generic = linalg.ops.GenericOp


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


def weighing_of(readers: list[Generic], dim: TensorDim, total: Reduction, before: list[Weighing]) -> Weighing | None:
    """What happens next to the weights at `dim`, where that leaves them a factor of the product."""
    value = dim.value
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
    return Weighing(op, operand, True, rows) if _of_rows(op, operand, total, dim.axis) else None


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


def summed_input(op: Generic, dim: TensorDim) -> int | None:
    """The input of a contraction from 0 that is `dim`'s tensor, read plainly, where the streamed loop is all that it
    sums over. A sum of squares is none: it grows with the square of its input, and so of what is divided by later."""
    sides = multiply_add_operands(op)
    structured = StructuredOp(op)
    if sides is None or sides[0] == sides[1] or not structured.reduction or splat_value(structured.outputs[0]) != 0:
        return None
    operand = next((side for side in sides if structured.inputs[side] is dim.value), None)
    if operand is None or list(structured.inputs).count(dim.value) != 1 or not is_plain(structured.maps[operand]):
        return None
    expr = structured.maps[operand].results[dim.axis]
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


def through(op: Generic, dim: TensorDim) -> TensorDim | None:
    """Where a dimension that an all-parallel op reads plainly is in its only result."""
    structured = StructuredOp(op)
    if dim.value not in structured.inputs or len(op.results) != 1:
        return None
    expr = structured.maps[structured.inputs.index(dim.value)].results[dim.axis]
    made: AffineMap = structured.output_maps[0]
    if not isinstance(expr, AffineDimExpr) or not is_plain(made) or expr not in made.results:
        return None
    return TensorDim(op.results[0], made.results.index(expr))
