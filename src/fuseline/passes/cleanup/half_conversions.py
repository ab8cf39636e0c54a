"""Values of half precision widened to f32 and back: results, arguments, numbers, what bodies read and yield."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, TensorType, f32
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue, Use
from xdsl.rewriter import InsertPoint

from fuseline.analysis.structured_op import input_count
from fuseline.ir.build import Emitter, element_of
from fuseline.ir.element_types import scalar_attribute
from fuseline.ir.fast.direct import (
    erase,
    operands_of,
    replace_uses,
    result_of,
    set_type,
)
from fuseline.ir.halves import widened
from fuseline.ir.provenance import provenance
from fuseline.ir.splats import one_element, splat_attribute


def widen_results(op: Operation) -> None:
    """Let every result of halves be one of f32; the IR is not valid until its readers follow."""
    for result in op.results:
        set_type(result, widened(result.type))


def widen_arguments(op: Operation, block: Block) -> None:
    """The elements that a structured op works on have the types of its operands."""
    if isinstance(op, linalg.ops.GenericOp | linalg.ops.FillOp):
        for argument, operand in zip(block.args, operands_of(op), strict=True):
            set_type(argument, element_of(operand))
    else:
        for argument in block.args:
            set_type(argument, widened(argument.type))


def is_init(use: Use) -> bool:
    """Whether a use is an init of a structured op, not an input."""
    return isinstance(use.operation, linalg.ops.GenericOp) and use.index >= input_count(use.operation)


def replace_op(op: Operation, value: SSAValue) -> None:
    """`value` in place of the only result of `op`, which goes."""
    replace_uses(result_of(op), value)
    erase(op)


def widened_number(value: Attribute, type_: Attribute) -> Attribute:
    """The same number, or numbers, as `type_`."""
    if isinstance(value, FloatAttr):
        return scalar_attribute(value.value.data, type_)
    assert isinstance(value, DenseIntOrFPElementsAttr) and isinstance(type_, TensorType)
    single = one_element(value)
    if single is not None:
        return splat_attribute(type_, float(single))
    return DenseIntOrFPElementsAttr.from_list(cast(Any, type_), [float(number) for number in value.get_values()])


def extended(value: SSAValue, uses: Sequence[Use]) -> SSAValue:
    """`value` widened, right behind what makes it; an argument's widening comes from the nodes that read it."""
    if isinstance(value, OpResult):
        emit = Emitter.after(value.op)
    else:
        assert isinstance(value, BlockArgument)
        nodes = {node for use in uses for node in provenance(use.operation)}
        emit = Emitter(InsertPoint.at_start(value.block), nodes)
    if not isinstance(value.type, TensorType):
        return emit.add(arith.ExtFOp(value, f32)).result
    return emit.elementwise([value], emit.empty_like(value, f32), lambda b: b.op(arith.ExtFOp, b.args[0], f32))


def truncated(value: SSAValue, position: Operation, element: Attribute) -> SSAValue:
    """The tensor `value` as one of `element`, right before `position`; one that nobody has written is another such."""
    emit = Emitter.before(position)
    if isinstance(value.owner, tensor.EmptyOp):
        return emit.empty_like(value, element)
    emit.location = value.op.location if isinstance(value, OpResult) else position.location
    return emit.elementwise(
        [value], emit.empty_like(value, element), lambda b: b.op(arith.TruncFOp, b.args[0], element)
    )
