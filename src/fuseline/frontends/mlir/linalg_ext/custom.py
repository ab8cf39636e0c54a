"""Custom ops: their body in their place, with all of each operand as its tile."""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from fuseline.ir.build import Emitter
from fuseline.ir.fast.direct import ops_of
from fuseline.ir.linalg_ext import CustomOp, ExtYieldOp
from fuseline.ir.provenance import carry, provenance
from fuseline.ir.units import add_units


def custom(op: CustomOp) -> list[SSAValue]:
    """What the body yields for the operands."""
    emit, block = Emitter.before(op), op.body.block
    assert op.parent is not None
    _say_unit(op)
    values: dict[SSAValue, SSAValue] = {
        argument: _as(emit, value, argument.type) for argument, value in zip(block.args, op.operands, strict=True)
    }
    for inner in ops_of(block):
        if isinstance(inner, ExtYieldOp):
            return [
                _as(emit, values.get(value, value), result.type)
                for value, result in zip(inner.values, op.res, strict=True)
            ]
        copy = inner.clone(values)
        carry([op, inner], [copy])
        op.parent.insert_op_before(copy, op)
    return []


def _say_unit(op: CustomOp) -> None:
    """Have fusion keep the ops of the body together, as whoever wrote them asks for."""
    function: Operation | None = op
    while function is not None and not isinstance(function, FuncOp):
        function = function.parent_op()
    if function is not None:
        add_units(function, provenance(op))


def _as(emit: Emitter, value: SSAValue, type_: Attribute) -> SSAValue:
    return (
        value
        if value.type == type_
        else emit.add(tensor.CastOp.create(operands=[value], result_types=[type_])).results[0]
    )
