"""materialize-fills: a fill of unknown size or value that is itself a result is computed like any other op.

    %f = linalg.fill ins(%c) outs(tensor.empty(%n))         %g = linalg.generic outs(tensor.empty(%n)) { yield %c }
    return %f                                          =>   return %g

Fills of known size and value become constants, unless they are large: then even what is a constant is computed like
this. Those that an op starts from or reads cost nothing. The result may be seen through reshapes, and go to a host
operator instead of the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, linalg
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, OpResult, SSAValue, Use
from xdsl.passes import ModulePass

from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.structured import splat_value
from fuseline.ir.build import PARALLEL, Emitter, element_of, identity_map, shape_of
from fuseline.ir.functions import functions
from fuseline.program.fills import MOST_ELEMENTS, elements_of, is_small_constant


@dataclass(frozen=True)
class MaterializeFillsPass(ModulePass):
    """Has no options."""

    name = "materialize-fills"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Replace fills and large splats of functions."""
        del ctx
        for function in functions(op):
            for inner in list(function.body.block.ops):
                if isinstance(inner, linalg.ops.FillOp) and not is_small_constant(inner):
                    _materialize(inner.results[0], lambda emit, fill=inner: (fill.inputs[0], fill.outputs[0]))
                elif isinstance(inner, arith.ConstantOp) and _is_large_splat(inner.result):
                    _materialize(inner.result, lambda emit, constant=inner: _number_and_room(emit, constant.result))


def _is_large_splat(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and elements_of(value) > MOST_ELEMENTS and splat_value(value) is not None


def _number_and_room(emit: Emitter, value: SSAValue) -> tuple[SSAValue, SSAValue]:
    number = splat_value(value)
    assert number is not None
    return emit.scalar(number, element_of(value)), emit.empty(element_of(value), shape_of(value))


def _materialize(value: SSAValue, number_and_room: Callable[[Emitter], tuple[SSAValue, SSAValue]]) -> None:
    """Have what leaves of a value that is one number everywhere computed; `number_and_room`: the number, and an empty
    tensor like the value."""
    leaving = [use for use in value.uses if _leaves(use)]
    if not leaving:
        return
    assert isinstance(value, OpResult)
    emit, rank = Emitter.after(value.op), len(shape_of(value))
    number, room = number_and_room(emit)
    filled = emit.generic([], [room], [identity_map(rank)], [PARALLEL] * rank, lambda body: [number]).results[0]
    for use in leaving:
        use.operation.operands[use.index] = filled


def _leaves(use: Use) -> bool:
    """Whether the value goes to the caller or a host operator, as it is or under another shape."""
    op: Operation = use.operation
    if isinstance(op, RESHAPES):
        result: SSAValue = op.results[0]
        return use.index == 0 and any(_leaves(inner) for inner in result.uses)
    return isinstance(op, func.ReturnOp | func.CallOp)


EXPORT = MaterializeFillsPass
