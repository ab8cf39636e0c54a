"""The loops of size 1 dropped from a generic, with the dimensions that they traverse."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import linalg, tensor
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import Rewriter

from fuseline.analysis.structured import captured_tensors
from fuseline.analysis.structured_op import input_count
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_constant
from fuseline.ir.fast.direct import body_of, operands_of, replace_uses, set_operands
from fuseline.ir.fast.nesting import ops_inside
from fuseline.passes.layout.rewriting.generics import extracts_of, rebuilt
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.unit_dims import Squeezer, kept_axes
from fuseline.passes.layout.rewriting.unit_loop_plan import UnitPlan, plan_of, start_value


def drop_unit_loops(scope: Scope, squeezer: Squeezer, op: linalg.ops.GenericOp) -> None:
    """Let one without its unit loops stand for `op`; nothing happens where there are none."""
    inner = ops_inside(op)
    if any([type(nested) is tensor.ExtractOp for nested in inner]):
        _squeeze_captured(squeezer, op)
    plan = plan_of(scope.shapes, op)
    if plan is not None:
        _rename_indices(inner, plan.loops)
        _apply(scope, squeezer, op, plan)


def _apply(scope: Scope, squeezer: Squeezer, op: linalg.ops.GenericOp, plan: UnitPlan) -> None:
    values, count = (
        [squeezer.keep(value, axes) for value, axes in zip(operands_of(op), plan.axes, strict=True)],
        input_count(op),
    )
    inputs, outputs, maps = values[:count], values[count:], list(plan.maps)
    if plan.emptied:
        outputs = [_without_start(scope, op, outputs[0])]
    _drop_unread_scalars(op, inputs, maps, plan.scalars)
    new = rebuilt(op, inputs, outputs, maps, plan.iterators)
    for old, core in zip(op.results, new.results, strict=True):
        squeezer.stand_for(old, core)


def _rename_indices(inner: Sequence[Operation], loops: Sequence[int]) -> None:
    position = {loop: i for i, loop in enumerate(loops)}
    for index in inner:
        if type(index) is not linalg.ops.IndexOp:
            continue
        loop = index.dim.value.data
        if loop in position:
            index.properties["dim"] = attributes.integer64(position[loop])
        else:
            zero = create_constant(attributes.index(0), attributes.INDEX, index.location)
            Rewriter.replace_op(index, zero)


def _without_start(scope: Scope, op: linalg.ops.GenericOp, init: SSAValue) -> SSAValue:
    """A reduction without loops computes once from the start value: put it in the body and start from an empty
    tensor."""
    start = start_value(op)
    assert start is not None
    replace_uses(body_of(op).args[-1], start)
    return scope.empty(Emitter.before(op), element_of(init), scope.dims(init))


def _drop_unread_scalars(
    op: linalg.ops.GenericOp, inputs: list[SSAValue], maps: list[AffineMap], scalars: Sequence[int]
) -> None:
    """Leave out those of the inputs `scalars` that the body does not read (the window of a 1x1 pooling)."""
    for i in reversed(scalars):
        argument = body_of(op).args[i]
        if argument.first_use is None:
            body_of(op).erase_arg(argument)
            del inputs[i], maps[i]


def _squeeze_captured(squeezer: Squeezer, op: linalg.ops.GenericOp) -> None:
    for value in captured_tensors(op):
        axes = kept_axes(shape_of(value))
        if len(axes) == len(shape_of(value)) or not squeezer.can(value):
            continue
        core = squeezer.keep(value, axes)
        for extract in extracts_of(op, value):
            set_operands(extract, [core, *(extract.indices[axis] for axis in axes)])
