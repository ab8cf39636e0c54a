"""clone-cheap-producers: copy into each dispatch region what costs nothing to repeat.

Scalar constants and arithmetic on them and on sizes, one-element and splat tensor constants, `tensor.empty`, fills and
reshapes of these are copied to where they are used; what is left outside is dead and removed. Large constants stay
outside: they are bindings. Sizes do, too: outlining computes them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from xdsl.context import Context
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import DenseResourceAttr, IndexType, ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.structured import PRODUCTS, Kind, captured, kind, splat_value
from fuseline.ir.fast.build import create_op
from fuseline.ir.fast.create import create_fill
from fuseline.ir.fast.direct import erase, operand_of, operands_of, result_of, set_operand
from fuseline.ir.fast.nesting import ops_inside, replace_inside
from fuseline.ir.flow import DispatchRegionOp

_RESHAPES = (tensor.ExpandShapeOp, tensor.CollapseShapeOp)


@dataclass(frozen=True)
class CloneCheapProducersPass(ModulePass):
    """Has no options."""

    name = "clone-cheap-producers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Copy into every region, at any depth."""
        del ctx
        for region in (op, *ops_inside(op)):
            if type(region) is DispatchRegionOp:
                _clone_into(region)


def _clone_into(region: DispatchRegionOp) -> None:
    copies: dict[OpResult, OpResult] = {}
    body = region.body.block
    cheap = [value for value in captured(region) if _is_cheap(value)]
    replace_inside(region, {value: _clone(value, body, copies) for value in cheap})
    for value in cheap:
        _erase_if_dead(value)


def _is_cheap(value: SSAValue) -> TypeGuard[OpResult]:
    if not isinstance(value, OpResult):
        return False
    op = value.op
    if type(op) is tensor.EmptyOp:
        return True
    if type(op) is linalg.ops.FillOp:
        return all(_is_cheap(operand) for operand in op.operands)
    if type(op) in _RESHAPES:
        return _is_cheap(op.operands[0])
    if type(op) is arith.ConstantOp:
        return not isinstance(op.value, DenseResourceAttr) and (kind(op) is Kind.SCALAR or _is_cheap_splat(value))
    return _is_scalar_arithmetic(op)


def _is_scalar_arithmetic(op: Operation) -> bool:
    """Whether `op` computes a number (no size: those are captured) from numbers and sizes alone, as the count that a
    mean divides by."""
    if kind(op) is not Kind.SCALAR or isinstance(op.results[0].type, IndexType):
        return False
    return all(isinstance(operand.type, IndexType) or _is_cheap(operand) for operand in op.operands)


def _is_cheap_splat(value: OpResult) -> bool:
    """A splat tensor, unless a contraction or convolution reads it: those want their operands in memory, packed."""
    return splat_value(value) is not None and not _is_packed(value)


def _is_packed(value: SSAValue) -> bool:
    """Whether a contraction or convolution reads `value`, be it under another shape."""
    return any(
        kind(op) in PRODUCTS or (type(op) in _RESHAPES and _is_packed(op.results[0]))
        for op in (use.operation for use in value.uses)
    )


def _clone(value: OpResult, body: Block, copies: dict[OpResult, OpResult]) -> OpResult:
    """A copy of the op behind `value` at the start of `body`, behind the other copies, those of its own cheap operands
    among them."""
    if value not in copies:
        copy = _copy(value.op)
        for i, operand in enumerate(operands_of(value.op)):
            if _is_cheap(operand):
                set_operand(copy, i, _clone(operand, body, copies))
        last, first = next(reversed(copies.values()), None), body.first_op
        if last is not None:
            body.insert_op_after(copy, last.op)
        elif first is not None:
            body.insert_op_before(copy, first)
        copies[value] = result_of(copy)
    return copies[value]


def _copy(op: Operation) -> Operation:
    """`op.clone()`, which asks the definition of an op about each of its parts: of what is cheap, only a fill has a
    region."""
    if type(op) is linalg.ops.FillOp:
        copy = create_fill(operand_of(op, 0), operand_of(op, 1), op.location)
    else:
        copy = create_op(
            type(op), operands_of(op), [result.type for result in op.results], op.properties, location=op.location
        )
    copy.attributes |= op.attributes
    for old, new in zip(op.results, copy.results, strict=True):
        new.name_hint = old.name_hint
    return copy


def _erase_if_dead(value: OpResult) -> None:
    if value.op.parent is None or value.first_use is not None:
        return  # an operand of several, erased with another one; or still read
    operands = operands_of(value.op)
    erase(value.op)
    for operand in operands:
        if _is_cheap(operand):
            _erase_if_dead(operand)


EXPORT = CloneCheapProducersPass
