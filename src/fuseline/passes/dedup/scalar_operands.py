"""Constants of an executable's bodies as operands of it, and back: scalars of rank 0, behind its tensor arguments."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, OpResult, SSAValue

from fuseline.dispatch.body_constants import BodyConstant, Number
from fuseline.dispatch.view import SCALAR_ATTRIBUTE
from fuseline.ir import flow
from fuseline.ir.build import Emitter
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_constant
from fuseline.ir.fast.direct import body_of, erase, is_unused, operands_of, result_of, set_operand, set_operands
from fuseline.ir.fast.nesting import ops_inside

_SCALAR = DictionaryAttr({"fuseline.constant": attributes.UNIT, SCALAR_ATTRIBUTE: attributes.UNIT})


def calls_of(module: ModuleOp) -> dict[str, list[flow.DispatchOp]]:
    """The dispatches of each executable, by its name."""
    found: dict[str, list[flow.DispatchOp]] = {}
    for function in module.ops:
        for op in ops_inside(function) if type(function) is FuncOp else ():
            if type(op) is flow.DispatchOp:
                found.setdefault(op.executable, []).append(op)
    return found


def add_operands(entry: FuncOp, groups: Sequence[Sequence[BodyConstant]]) -> None:
    """Let `entry` have a further argument for each group of equal constants, read in place of all of them."""
    block = body_of(entry)
    at = sum(isinstance(argument.type, TensorType) for argument in block.args)
    for number, group in enumerate(groups):
        type_ = group[0].value.type
        argument = block.insert_arg(attributes.tensor_type(type_, ()), at + number)
        read = _read(entry, argument)
        for constant in group:
            _replace(constant, read)
    _retyped(entry, at, [_SCALAR] * len(groups))


def _replace(constant: BodyConstant, read: SSAValue) -> None:
    """Let a reader of `constant` have `read` in its place; the constant goes with its last reader."""
    old = operands_of(constant.reader)[constant.position]
    set_operand(constant.reader, constant.position, read)
    if isinstance(old, OpResult) and is_unused(old.op):
        erase(old.op)


def _read(entry: FuncOp, argument: BlockArgument) -> SSAValue:
    """The number behind `argument`, at the start of the function."""
    first = body_of(entry).first_op
    assert first is not None
    assert isinstance(argument.type, TensorType)
    return Emitter.before(first).add(tensor.ExtractOp(argument, [], argument.type.get_element_type())).result


def _retyped(entry: FuncOp, at: int, added: Sequence[DictionaryAttr]) -> None:
    """Say in the function's type, and in the attributes of its arguments, what was added from argument `at` on."""
    types = [argument.type for argument in body_of(entry).args]
    entry.properties["function_type"] = FunctionType.from_lists(types, list(entry.function_type.outputs.data))
    plain = [DictionaryAttr({})] * (len(types) - len(added))
    known = list(entry.arg_attrs.data) if entry.arg_attrs is not None else plain
    entry.properties["arg_attrs"] = ArrayAttr([*known[:at], *added, *known[at:]])


class ScalarArguments:
    """Gives dispatches numbers as further tensor arguments; equal ones of a function are one constant."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, Number], SSAValue] = {}

    def append(self, call: flow.DispatchOp, numbers: Sequence[Number]) -> None:
        """Let `call` pass `numbers` behind its tensors."""
        tensors = [value for value in call.arguments if isinstance(value.type, TensorType)]
        sizes = [value for value in call.arguments if not isinstance(value.type, TensorType)]
        arguments = [*tensors, *(self._constant(call, number) for number in numbers), *sizes]
        groups = (tuple(call.workload), arguments, tuple(call.argument_dims), tuple(call.result_dims))
        set_operands(call, [value for group in groups for value in group])
        call.properties["operandSegmentSizes"] = attributes.segments(tuple([len(group) for group in groups]))

    def _constant(self, call: flow.DispatchOp, number: Number) -> SSAValue:
        block = call.parent
        assert block is not None and block.first_op is not None
        key = id(block), number
        if key not in self._made:
            type_ = attributes.tensor_type(number.type, ())
            splat = DenseIntOrFPElementsAttr.from_list(type_, [number.value.data])
            self._made[key] = result_of(Emitter.before(block.first_op).add(create_constant(splat, type_)))
        return self._made[key]
